import time

for step in range(1, 6):
    time.sleep(1)
    print(f"step={step} loss={5 / step:.3f}", flush=True)
