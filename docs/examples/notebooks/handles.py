import trainmaster_client

mine = trainmaster_client.jobs(mine=True)
for job in mine:
    print(job)

waiting = mine.to_frame().query("state == 'pending'")
print(waiting[["name", "pool", "position", "why"]])

job = trainmaster_client.job("llama-7b-pretrain")
end = job.wait(timeout=3600)
print(end.state, end.why)
