// Projects a step of synchronous data-parallel training on a cluster: forward, backward with
// overlapping reductions of gradient buckets, update; and the time lost to communication and to the
// slowest rank.
//
// A workload is a list of layers. The backward pass produces the gradients of the last layer first.
// Buckets are filled in that order and reduced one after the other, each as soon as its last
// gradient is ready; replay.hpp computes the time of a bucket. Every rank waits for the slowest
// one, whose compute time is the largest of `ranks` draws from a normal distribution.
//
// Threads: pure functions. Errors: none. Units: seconds, bytes, FLOP.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collectives/projection/replay.hpp"

namespace trainyard::collectives::projection {

struct Layer {
  double parameters = 0;
  double flop = 0;  // for its forward pass; the backward pass costs twice as much
};

struct Workload {
  std::string name;
  std::vector<Layer> layers;   // in the order of the forward pass
  double compute_seconds = 0;  // time of a step on a single rank: forward, backward and update
  double gradient_bytes = 4;   // of each parameter
  double parameters() const;
};

// Return public architectures, layer by layer, as their papers define them. The caller sets
// compute_seconds.
Workload resnet(int depth);  // 50 or 101: He et al. 2015, without the biases of batch norm
Workload vgg16();            // Simonyan and Zisserman 2014
Workload bert_large();       // Devlin et al. 2018
Workload mask_rcnn();        // He et al. 2017, ResNet-50 and feature pyramid

struct Overlap {
  double bucket_bytes = 25 << 20;
  // the longest wait of a bucket for the next cycle: twice the average wait
  double cycle_seconds = 0;
  // Standard deviation of the ranks' compute times, divided by their mean.
  double jitter = 0.01;
};

struct StepTimes {
  double compute = 0;  // time of a single rank
  double slowest = 0;  // time of waiting for the slowest rank
  double exposed = 0;  // time of communication that does not overlap with computation
  double total() const { return compute + slowest + exposed; }
  // Returns the throughput divided by `ranks` times the throughput of a single rank.
  double efficiency() const { return compute / total(); }
};

// Returns the plan of an operation of this size.
using Chooser = std::function<Choice(size_t bytes)>;

StepTimes step(const Workload& workload, const Cluster& cluster, const Overlap& overlap,
               const Chooser& chooser);

// Returns the expected largest of n draws from a normal distribution, in standard deviations above
// the mean (Blom 1958).
double largest_of(int n);

}  // namespace trainyard::collectives::projection
