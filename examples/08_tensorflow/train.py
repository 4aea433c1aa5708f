"""A Keras script for Horovod as they are written for it: nothing here knows of Trainyard."""

import argparse
import hashlib
import os

import keras
import numpy as np
import tensorflow as tf

import horovod.keras as hvd

parser = argparse.ArgumentParser(description="Two spirals with Keras and Horovod")
parser.add_argument("--batch-size", type=int, default=25)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--base-lr", type=float, default=0.005)
args = parser.parse_args()

hvd.init()
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
if tf.config.list_physical_devices("GPU"):
    tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[hvd.local_rank()], "GPU")
keras.utils.set_random_seed(hvd.rank())

turn = np.linspace(0.5, 3 * np.pi, 400)
spiral = np.stack([turn * np.cos(turn), turn * np.sin(turn)], 1) / 2
points = np.concatenate([spiral, -spiral]).astype("float32")
classes = np.concatenate([np.zeros(400), np.ones(400)]).astype("float32")
dataset = (tf.data.Dataset.from_tensor_slices((points, classes)).shard(hvd.size(), hvd.rank())
           .shuffle(800, seed=hvd.rank()).batch(args.batch_size, drop_remainder=True))

model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(64, activation="tanh"), keras.layers.Dense(64, activation="tanh"),
                          keras.layers.Dense(1, activation="sigmoid")])
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(args.base_lr * hvd.size()))
model.compile(optimizer=optimizer, loss="binary_crossentropy", metrics=["accuracy"])

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=args.base_lr * hvd.size(), warmup_epochs=3),
]
history = model.fit(dataset, epochs=args.epochs, callbacks=callbacks, verbose=2 if hvd.rank() == 0 else 0)
if hvd.rank() == 0:
    print(f"{args.epochs} epochs, {hvd.size()} ranks: accuracy={history.history['accuracy'][-1]:.3f}", flush=True)

weights = hashlib.sha256(b"".join(each.tobytes() for each in model.get_weights())).hexdigest()
print(f"rank {hvd.rank()} local {hvd.local_rank()} of {hvd.local_size()} weights {weights}", flush=True)
if hvd.rank() == 0 and "SM_MODEL_DIR" in os.environ:
    model.save(os.path.join(os.environ["SM_MODEL_DIR"], "model.keras"))
