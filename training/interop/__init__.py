"""Models come from Hugging Face's files and leave as such: config.json, safetensors, adapters of PEFT."""
