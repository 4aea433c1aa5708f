// Projects training steps on clusters that are not available, by replaying our plans, for ./yard
// bench projection.
//
//   project published             the curves that others published, on their links and with their
//                                 algorithms
//   project ours                  our plans on the same machines, with up to ten thousand ranks
//   project allreduce HOSTS BYTES PLAN LATENCY_US BYTES_PER_SECOND REDUCE_BYTES_PER_SECOND
//           MESSAGE_US PROCESSORS BURST_BYTES
//                                 one operation between hosts of one rank, which run.py fits and
//                                 measures
//
// Prints one JSON object per line. Every assumption is in a table below with its source, and is
// printed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "collectives/projection/step.hpp"

namespace {

using namespace trainyard::collectives;
using namespace trainyard::collectives::projection;
using plan::Algorithm;

// The speed of a machine's ranks and network. Machines have eight GPUs (the first one four).
struct Machine {
  const char* name;
  int ranks;
  LinkCosts local;
  LinkCosts between;
  double reduce_seconds_per_byte;
};
// 25 Gbit/s with RDMA; PCIe between the GPUs.
constexpr Machine kP100Roce{
    "4 x P100, 25 Gbit/s RoCE", 4, {10e-6, 1 / 10e9}, {10e-6, 1 / 2.9e9}, 1 / 300e9};
// 25 Gbit/s over TCP (ENA); NVLink between the GPUs.
constexpr Machine kP3{
    "p3.16xlarge: 8 x V100, 25 Gbit/s", 8, {10e-6, 1 / 60e9}, {30e-6, 1 / 2.8e9}, 1 / 500e9};
// 100 Gbit/s (EFA).
constexpr Machine kP3dn{
    "p3dn.24xlarge: 8 x V100, 100 Gbit/s", 8, {10e-6, 1 / 60e9}, {20e-6, 1 / 11e9}, 1 / 500e9};

Cluster cluster_of(const Machine& machine, int ranks) {
  Cluster cluster;
  cluster.hosts = hosts_of(ranks, machine.ranks);
  cluster.local = machine.local;
  cluster.between = machine.between;
  cluster.reduce_seconds_per_byte = machine.reduce_seconds_per_byte;
  return cluster;
}

// The step of one rank, as published for a GPU and batch size.
Workload of_batch(Workload workload, double samples, double samples_per_second,
                  double gradient_bytes = 4) {
  workload.compute_seconds = samples / samples_per_second;
  workload.gradient_bytes = gradient_bytes;
  return workload;
}

void print(const char* curve, const Workload& workload, const Machine& machine, int ranks,
           const StepTimes& times, double efficiency, const char* assumed) {
  std::printf(
      "{\"curve\": \"%s\", \"workload\": \"%s\", \"machine\": \"%s\", \"ranks\": %d, "
      "\"efficiency\": %.4f, \"compute_ms\": %.2f, \"slowest_ms\": %.2f, \"exposed_ms\": %.2f, "
      "\"assumed\": \"%s\"}\n",
      curve, workload.name.c_str(), machine.name, ranks, efficiency, times.compute * 1e3,
      times.slowest * 1e3, times.exposed * 1e3, assumed);
  std::fflush(stdout);
}

Chooser always(Algorithm algorithm, size_t chunk_bytes, Algorithm between = Algorithm::ring) {
  return [=](size_t) {
    Choice choice;
    choice.algorithm = algorithm;
    choice.chunk_bytes = algorithm == Algorithm::hierarchical ? size_t{1} << 20 : chunk_bytes;
    choice.between = between;
    choice.between_chunk_bytes = chunk_bytes;
    return choice;
  };
}

void published() {
  // Horovod, docs/benchmarks.rst: 128 machines of four P100, 25 Gbit/s RoCE; NCCL's ring over all
  // ranks; fusion of 64 MB and cycles of 5 ms as in its release at that time. One P100 and
  // tf_cnn_benchmarks, 64 images: ResNet-101 138 images/s, VGG-16 148.
  const Overlap horovod{64 << 20, 5e-3, 0.015};
  const char* horovod_assumptions =
      "ring over all ranks, fusion 64 MB, cycle 5 ms, jitter 1.5%, 64 images at the P100's "
      "published speed";
  for (const auto& workload : {of_batch(resnet(101), 64, 138), of_batch(vgg16(), 64, 148)}) {
    for (const int ranks : {8, 16, 32, 64, 128, 256, 512}) {
      const auto times =
          step(workload, cluster_of(kP100Roce, ranks), horovod, always(Algorithm::ring, 512 << 10));
      print("Horovod", workload, kP100Roce, ranks, times, times.efficiency(), horovod_assumptions);
    }
  }
  // Herring (SC20): BERT-large on 256 p3dn, half-precision gradients; sums within the hosts first,
  // then balanced shards over all hosts, which is our direct plan between hosts. One V100: 16
  // sequences of 128 tokens at 72 a second.
  const Overlap herring{25 << 20, 1e-3, 0.015};
  const auto bert = of_batch(bert_large(), 16, 72, 2);
  for (const int ranks : {8, 64, 256, 512, 1024, 2048}) {
    const auto times = step(bert, cluster_of(kP3dn, ranks), herring,
                            always(Algorithm::hierarchical, 512 << 10, Algorithm::direct));
    print("Herring", bert, kP3dn, ranks, times, times.efficiency(),
          "shards over all hosts, buckets 25 MB, cycle 1 ms, jitter 1.5%, 16 sequences at 72/s, "
          "f16 gradients");
  }
  // Mask R-CNN on p3dn (aws-samples): 8 to 32 GPUs with 4 images each, 24 epochs of 118,287 images.
  // The start and the validation after each epoch do not scale with the ranks. Their time is
  // derived from the run of 12 epochs (5.09 h and 1.94 h), half of it for the start, and checked
  // against the run of 24.
  const Overlap tensorpack{64 << 20, 5e-3, 0.03};
  constexpr double images = 118287, fixed_of_12 = (4 * 1.94 - 5.09) / 3 * 3600;
  const double fixed_of_24 = fixed_of_12 * 1.5;
  const double images_per_second = images * 12 / ((5.09 * 3600 - fixed_of_12) * 8);
  const auto mask = of_batch(mask_rcnn(), 4, images_per_second);
  double base = 0;
  for (const int ranks : {8, 16, 32}) {
    const auto times =
        step(mask, cluster_of(kP3dn, ranks), tensorpack, always(Algorithm::ring, 512 << 10));
    const double hours = (fixed_of_24 + 24 * images / (4.0 * ranks) * times.total()) / 3600;
    if (ranks == 8) base = hours * 8;
    print("Mask R-CNN", mask, kP3dn, ranks, times, base / (hours * ranks),
          "24 epochs against 8 ranks; start and validation from the run of 12 epochs; ring, fusion "
          "64 MB, jitter 3%");
  }
}

// The bucket sizes from which the tuner of fusion chooses.
constexpr double kBucketSizes[] = {2 << 20, 8 << 20, 25 << 20};

void ours() {
  struct Line {
    Workload workload;
    const Machine& machine;
    double jitter;
    const char* assumed;
  };
  // ResNet-50: 256 images at 625 a second, as in the post on AWS Batch and FSx. Mask R-CNN: as
  // above.
  const Line lines[] = {
      {of_batch(resnet(50), 256, 625), kP3, 0.01,
       "256 images at 625/s, f32 gradients, buckets of 2, 8 or 25 MiB, cycle 1 ms, jitter 1%"},
      {of_batch(mask_rcnn(), 4, 9.4), kP3dn, 0.01,
       "4 images at 9.4/s, f32 gradients, buckets of 2, 8 or 25 MiB, cycle 1 ms, jitter 1%"}};
  for (const auto& line : lines) {
    for (const int ranks : {8, 16, 32, 64, 160, 480, 1000, 10000}) {
      const auto cluster = cluster_of(line.machine, ranks);
      const auto table = Table::made_from(cluster.costs(), cluster.hosts);
      const auto choose = [&](size_t bytes) {
        return table.choose(plan::Operation::allreduce, bytes);
      };
      StepTimes best;
      for (const double bucket_bytes : kBucketSizes) {
        const auto times = step(line.workload, cluster, {bucket_bytes, 1e-3, line.jitter}, choose);
        if (best.compute == 0 || times.total() < best.total()) best = times;
      }
      print("Trainyard", line.workload, line.machine, ranks, best, best.efficiency(), line.assumed);
    }
  }
}

int allreduce(char** arguments) {
  Cluster cluster;
  cluster.hosts = hosts_of(std::atoi(arguments[0]), 1);
  const auto bytes = size_t(std::atoll(arguments[1]));
  cluster.between = {std::atof(arguments[3]) / 1e6, 1 / std::atof(arguments[4])};
  cluster.reduce_seconds_per_byte = 1 / std::atof(arguments[5]);
  cluster.message_seconds = std::atof(arguments[6]) / 1e6;
  cluster.processors = std::atoi(arguments[7]);
  cluster.burst_bytes = std::atof(arguments[8]);
  auto table = Table::made_from(cluster.costs(), cluster.hosts);
  if (const auto read = table.override_with(std::string("allreduce=") + arguments[2] + ":0-");
      !read) {
    std::fprintf(stderr, "project: %s\n", read.error().message.c_str());
    return 2;
  }
  const Choice choice = table.choose(plan::Operation::allreduce, bytes);
  std::printf("{\"seconds\": %.9f}\n", allreduce_seconds(choice, bytes, cluster));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "published" && count == 2) return published(), 0;
  if (what == "ours" && count == 2) return ours(), 0;
  if (what == "allreduce" && count == 11) return allreduce(arguments + 2);
  std::fprintf(
      stderr,
      "usage: project published | ours | allreduce HOSTS BYTES PLAN LATENCY_US BYTES_PER_SECOND "
      "REDUCE_BYTES_PER_SECOND MESSAGE_US PROCESSORS BURST_BYTES\n");
  return 2;
}
