"""Names the images that the SDK's estimators request by default. conftest.py replaces them by
Python environments of this machine."""

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
HUGGING_FACE = (
    f"{REGISTRY}/huggingface-pytorch-training:2.1.0-transformers4.36.0-cpu-py310-ubuntu22.04"
)
PYTORCH = f"{REGISTRY}/pytorch-training:2.3.0-cpu-py311-ubuntu20.04-sagemaker"
TENSORFLOW = f"{REGISTRY}/tensorflow-training:2.14.1-cpu-py310"
SECONDS_MAX = 600  # importing current frameworks from a cold disk takes half a minute
