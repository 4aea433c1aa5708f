"""What Trainyard brings to Python: `import trainyard.torch` registers its backend with torch.distributed."""
