"""The other stage: template.yaml deployed by ``sam``, onto an emulator or into an account."""
