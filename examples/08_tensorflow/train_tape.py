"""Trains with TensorFlow and Horovod in a custom training loop. The script is unmodified: it does
not depend on Trainyard."""

import argparse
import os

import horovod.tensorflow as hvd
import keras
import spirals
import tensorflow as tf

parser = argparse.ArgumentParser(description="Two spirals with TensorFlow and Horovod")
parser.add_argument("--batch-size", type=int, default=25)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--base-lr", type=float, default=0.005)
args = parser.parse_args()

hvd.init()
keras.utils.set_random_seed(hvd.rank())

dataset = spirals.dataset(args.batch_size, hvd.size(), hvd.rank())
model = keras.Sequential(
    [
        keras.Input((2,)),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(1),
    ]
)
loss = keras.losses.BinaryCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(args.base_lr * hvd.size())
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)


@tf.function
def training_step(batch: tf.Tensor, labels: tf.Tensor, first_batch: bool) -> tf.Tensor:
    with tf.GradientTape() as tape:
        logits = model(batch, training=True)
        loss_value = loss(labels[:, None], logits)
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss_value, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    if first_batch:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables, root_rank=0)
    return tf.reduce_mean(tf.cast((logits[:, 0] > 0) == (labels > 0.5), tf.float32))


for epoch in range(args.epochs):
    right = [
        training_step(batch, labels, epoch == 0 and number == 0)
        for number, (batch, labels) in enumerate(dataset)
    ]
accuracy = hvd.allreduce(tf.reduce_mean(right), name="accuracy")
if hvd.rank() == 0:
    print(f"{args.epochs} epochs, {hvd.size()} ranks: accuracy={float(accuracy):.3f}", flush=True)

print(
    f"rank {hvd.rank()} local {hvd.local_rank()} of {hvd.local_size()} weights"
    f" {spirals.digest(model)}",
    flush=True,
)
if hvd.rank() == 0 and "SM_MODEL_DIR" in os.environ:
    checkpoint.save(os.path.join(os.environ["SM_MODEL_DIR"], "checkpoint"))
