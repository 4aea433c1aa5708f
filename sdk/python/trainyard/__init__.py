"""Trainyard's collectives for Python: `import trainyard.torch` registers a backend of
torch.distributed."""

__version__ = "0.1.0"
