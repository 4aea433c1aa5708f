"""`import horovod.keras as hvd`: Keras 3 over TensorFlow, as horovod.tensorflow.keras."""

# This module is an alias.
from horovod.tensorflow.keras import *  # noqa: F403
from horovod.tensorflow.keras import callbacks as callbacks
from horovod.tensorflow.keras import elastic as elastic
