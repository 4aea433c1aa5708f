"""Trains with Keras and Horovod. The script is unmodified: it does not depend on Trainyard."""

import argparse
import os

import horovod.keras as hvd
import keras
import spirals
import tensorflow as tf

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

dataset = spirals.dataset(args.batch_size, hvd.size(), hvd.rank())
model = keras.Sequential(
    [
        keras.Input((2,)),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(args.base_lr * hvd.size()))
model.compile(optimizer=optimizer, loss="binary_crossentropy", metrics=["accuracy"])

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=args.base_lr * hvd.size(), warmup_epochs=3),
]
history = model.fit(
    dataset, epochs=args.epochs, callbacks=callbacks, verbose=2 if hvd.rank() == 0 else 0
)
if hvd.rank() == 0:
    print(
        f"{args.epochs} epochs, {hvd.size()} ranks: accuracy={history.history['accuracy'][-1]:.3f}",
        flush=True,
    )

print(
    f"rank {hvd.rank()} local {hvd.local_rank()} of {hvd.local_size()} weights"
    f" {spirals.digest(model)}",
    flush=True,
)
if hvd.rank() == 0 and "SM_MODEL_DIR" in os.environ:
    model.save(os.path.join(os.environ["SM_MODEL_DIR"], "model.keras"))
