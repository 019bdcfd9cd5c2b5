// What a dry run of a policy says, grouped: worst first, with the counts that a confirmation names.

export const KINDS = {
  forbidden: "would be refused when due to start",
  impossible: "can never start",
  preempted: "would be preempted and requeued",
  "stops-waiting": "would wait no longer, as others are stopped for it",
  starts: "would start now",
  waits: "would wait longer",
};

// `[{kind, label, changes}]`, kinds that this page does not know last.
export function groupedChanges(changes) {
  const groups = new Map(Object.keys(KINDS).map((kind) => [kind, []]));
  for (const change of changes ?? []) {
    if (!groups.has(change.change)) groups.set(change.change, []);
    groups.get(change.change).push(change);
  }
  return [...groups].filter(([, found]) => found.length).map(([kind, found]) => ({ kind, label: KINDS[kind] ?? kind, changes: found }));
}

// `3 would start now, 1 can never start`; of none a sentence that says so.
export function countsText(groups, isTruncated) {
  const said = groups.map(({ label, changes }) => `${changes.length} ${label}`).join(", ");
  const more = isTruncated ? " (more jobs wait: only the first that ask for the same instances were tried)" : "";
  return (said ? `Of the jobs there are now ${said}` : "No job would start, stop or wait for it") + more + ".";
}

// Lines of two texts as they differ: `{sign: " " | "+" | "-", text}`, with the lines around each difference.
//
// Long texts are compared from both ends, and what lies between is one difference.
export function lineDiff(before, after, around = 2) {
  const [old, young] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < old.length && head < young.length && old[head] === young[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < young.length - head && old.at(-1 - tail) === young.at(-1 - tail)) tail += 1;
  if (head === old.length && head === young.length) return [];
  const middle = differing(old.slice(head, old.length - tail), young.slice(head, young.length - tail));
  const same = (text) => ({ sign: " ", text });
  const lines = [...old.slice(Math.max(0, head - around), head).map(same), ...middle, ...old.slice(old.length - tail, old.length - tail + around).map(same)];
  return withoutFar(lines, around);
}

const MOST_COMPARED = 1_000_000;

// By the longest common subsequence; a table of lines times lines, so bounded.
function differing(old, young) {
  const signed = (sign) => (text) => ({ sign, text });
  if (old.length * young.length > MOST_COMPARED) return [...old.map(signed("-")), ...young.map(signed("+"))];
  const width = young.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = young.length - 1; column >= 0; column -= 1) {
      common[row * width + column] =
        old[row] === young[column]
          ? common[(row + 1) * width + column + 1] + 1
          : Math.max(common[(row + 1) * width + column], common[row * width + column + 1]);
    }
  }
  const lines = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < young.length) {
    if (row < old.length && column < young.length && old[row] === young[column]) {
      lines.push({ sign: " ", text: old[row] });
      row += 1;
      column += 1;
    } else if (row < old.length && (column === young.length || common[(row + 1) * width + column] >= common[row * width + column + 1])) {
      lines.push({ sign: "-", text: old[row] });
      row += 1;
    } else {
      lines.push({ sign: "+", text: young[column] });
      column += 1;
    }
  }
  return lines;
}

function withoutFar(lines, around) {
  const isNear = lines.map(() => false);
  lines.forEach((line, index) => {
    if (line.sign === " ") return;
    for (let near = Math.max(0, index - around); near <= Math.min(lines.length - 1, index + around); near += 1) isNear[near] = true;
  });
  const kept = [];
  lines.forEach((line, index) => {
    if (isNear[index]) kept.push(line);
    else if (isNear[index - 1]) kept.push({ sign: "…", text: "" });
  });
  return kept;
}
