"""Tests TensorFlow's own strategies on two hosts, with the TF_CONFIG that the platform writes."""

from tests import scripts
from tests.frameworks import images
from tests.trainyard_server import Server

# As in TensorFlow's tutorial: the chief coordinates, and workers serve until it has ended.
# SageMaker names it master.
PARAMETER_SERVER = """
import json, os, socket, time
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
if task["type"] == "worker":
    spec = tf.train.ClusterSpec(cluster)
    server = tf.distribute.Server(spec, job_name="worker", task_index=task["index"])
    while True:
        try:
            link = socket.create_connection((cluster["master"][0].split(":")[0], 9000))
            break
        except OSError:
            time.sleep(0.1)
    link.recv(1)  # until the coordinator is done
    print("WORKER", task["index"], "served", flush=True)
    os._exit(0)

listener = socket.create_server(("", 9000))
links = [listener.accept()[0] for _ in cluster["worker"]]
hosts = {"chief": cluster["master"], "ps": cluster["ps"], "worker": cluster["worker"]}
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    tf.train.ClusterSpec(hosts), task_type="chief", task_id=0, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weights = [tf.Variable(tf.zeros([4])) for _ in cluster["ps"]]

@tf.function
def step():
    for weight in weights:
        gradient = weight - tf.constant([1.0, 2.0, 3.0, 4.0])
        weight.assign_sub(0.5 * gradient)
    return tf.reduce_sum(weights[0])

results = [coordinator.schedule(step) for _ in range(40)]
coordinator.join()
for weight in weights:
    print("ON", weight.device, [round(float(number), 3) for number in weight.numpy()], flush=True)
with open(os.path.join(os.environ["SM_MODEL_DIR"], "weights.json"), "w") as file:
    json.dump([weight.numpy().tolist() for weight in weights], file)
for link in links:
    link.close()
"""


def test_tensorflow_trains_with_parameter_servers(cluster: Server) -> None:
    _, lines = scripts.run(
        cluster,
        "servers",
        "train.py",
        {"train.py": PARAMETER_SERVER},
        hosts=2,
        image=images.TENSORFLOW,
        instance_type="ml.m5.large",
        seconds_max=images.SECONDS_MAX,
        hyperparameters={"sagemaker_parameter_server_enabled": True},
    )
    placed = sorted(line for line in lines if line.startswith("ON "))
    assert len(placed) == 2, lines[-40:]
    for number, line in enumerate(placed):
        assert f"/job:ps/replica:0/task:{number}/" in line and line.endswith(
            "[1.0, 2.0, 3.0, 4.0]"
        ), placed
    assert "WORKER 0 served" in lines


MIRRORED = """
import os
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
context = tf.distribute.get_replica_context
worker = strategy.cluster_resolver.task_id
with strategy.scope():
    weight = tf.Variable([4.0, 4.0])

def train(target):
    gradient = context().all_reduce(tf.distribute.ReduceOp.MEAN, weight - target)
    weight.assign_sub(0.5 * gradient)

@tf.function
def step(target):
    strategy.run(train, args=(target,))

for _ in range(40):
    step(tf.constant([float(worker), 10.0 * worker]))
weights = [round(float(number), 3) for number in weight.numpy()]
print("WORKER", worker, "of", strategy.num_replicas_in_sync, weights, flush=True)
"""


def test_tensorflow_trains_with_mirrored_workers(cluster: Server) -> None:
    _, lines = scripts.run(
        cluster,
        "mirrored",
        "train.py",
        {"train.py": MIRRORED},
        hosts=2,
        image=images.TENSORFLOW,
        instance_type="ml.m5.large",
        seconds_max=images.SECONDS_MAX,
        hyperparameters={"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    )
    output = sorted(line for line in lines if line.startswith("WORKER"))
    assert output == [f"WORKER {worker} of 2 [0.5, 5.0]" for worker in (0, 1)], lines[-40:]
