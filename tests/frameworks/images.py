"""What the SDK's estimators ask for by default; conftest.py has them as Python environments of this machine."""

HUGGING_FACE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:2.1.0-transformers4.36.0-cpu-py310-ubuntu22.04"
PYTORCH = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.3.0-cpu-py311-ubuntu20.04-sagemaker"
TENSORFLOW = "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14.1-cpu-py310"
SECONDS_MAX = 600  # current frameworks take half a minute to import where the disk is cold
