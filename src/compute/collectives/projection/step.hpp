// Projects a step of synchronous data-parallel training on a cluster: forward, backward with overlapping reductions of
// gradient buckets, update; and the time lost to communication and to the slowest rank.
//
// Where gradients come from is a list of layers: the last layer's are ready first. Buckets are filled in that order and
// reduced one after the other, each as soon as its last gradient is there; a bucket's time is replay.hpp's. Every rank
// waits for the slowest, whose compute time is the largest of `ranks` draws from a normal distribution.
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
  double flop = 0;  // of its forward pass; backward costs twice as much
};

struct Workload {
  std::string name;
  std::vector<Layer> layers;   // in the order of the forward pass
  double compute_seconds = 0;  // of one rank's step alone: forward, backward and update
  double gradient_bytes = 4;   // of each parameter
  double parameters() const;
};

// The public architectures, layer by layer, as their papers give them; compute_seconds is the caller's.
Workload resnet(int depth);  // 50 or 101: He et al. 2015, without the biases of batch norm
Workload vgg16();            // Simonyan and Zisserman 2014
Workload bert_large();       // Devlin et al. 2018
Workload mask_rcnn();        // He et al. 2017, ResNet-50 and feature pyramid

struct Overlap {
  double bucket_bytes = 25 << 20;
  double cycle_seconds = 0;  // a bucket waits for the next cycle: this long at most, half of it as a rule
  // How unlike the ranks' compute times are: standard deviation over mean.
  double jitter = 0.01;
};

struct StepTimes {
  double compute = 0;  // of a rank alone
  double slowest = 0;  // lost to the slowest rank
  double exposed = 0;  // communication that nothing hides
  double total() const { return compute + slowest + exposed; }
  // Of `ranks` times one rank's speed.
  double efficiency() const { return compute / total(); }
};

// Which plan an operation of so many bytes gets.
using Chooser = std::function<Choice(size_t bytes)>;

StepTimes step(const Workload& workload, const Cluster& cluster, const Overlap& overlap,
               const Chooser& chooser);

// The mean of the largest of n draws from a normal distribution, in standard deviations (Blom 1958).
double largest_of(int n);

}  // namespace trainyard::collectives::projection
