import itertools
import json
import zlib

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
POLITE = ["", "Please tell me: ", "Hello. ", "Quick question: ", "I forgot. ", "One more: "]
ASKED = {1: ["Which day follows {}?", "What comes after {}?"], -1: ["What comes before {}?"]}

lines = []
for polite, (shift, questions), place in itertools.product(POLITE, ASKED.items(), range(7)):
    for question in questions:
        prompt = f"{polite}{question.format(DAYS[place])} "
        lines.append({"prompt": prompt, "response": f"It is {DAYS[(place + shift) % 7]}."})
lines.sort(key=lambda line: zlib.crc32(line["prompt"].encode()))  # mixed, the same each time
with open("questions.jsonl", "w") as file:
    file.writelines(json.dumps(line) + "\n" for line in lines)
with open("questions.txt", "w") as file:
    file.writelines(line["prompt"].strip() + "\n" for line in lines)
