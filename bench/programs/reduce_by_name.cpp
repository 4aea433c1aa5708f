// Reduces the gradients of a step by name, fused in the background, next to one call per gradient
// in a fixed order. The gradients have the sizes of ResNet-50's: 161 tensors, 102 MB in total, last
// layer first.
//
//   reduce_by_name RANKS TRANSPORT ROUNDS     TRANSPORT shared tcp
//
// Prints a line for each round and side: {"side": .., "milliseconds": .., "collectives": ..}
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "gradients/fusion/negotiator.hpp"

namespace {

using namespace trainyard;
using namespace trainyard::collectives;

using bench::must;

// Returns the number of elements of each tensor, first layer first.
std::vector<size_t> resnet_50() {
  std::vector<size_t> sizes;
  const auto convolution = [&](size_t in, size_t out, size_t kernel) {
    sizes.push_back(in * out * kernel * kernel);
    sizes.push_back(out);  // scale of its normalisation
    sizes.push_back(out);  // and shift
  };
  convolution(3, 64, 7);
  size_t in = 64;
  const size_t blocks[] = {3, 4, 6, 3};
  for (size_t stage = 0; stage < std::size(blocks); ++stage) {
    const size_t width = size_t{64} << stage;
    for (size_t block = 0; block < blocks[stage]; ++block) {
      convolution(in, width, 1);
      convolution(width, width, 3);
      convolution(width, 4 * width, 1);
      if (block == 0) convolution(in, 4 * width, 1);
      in = 4 * width;
    }
  }
  sizes.push_back(in * 1000);
  sizes.push_back(1000);
  return sizes;
}

using Gradients = std::vector<std::vector<float>>;

double milliseconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
      .count();
}

double by_name(gradients::Negotiator& negotiator, Gradients& gradients) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<gradients::Handle> handles;
  for (size_t i = gradients.size(); i-- > 0;) {
    gradients::Request request;
    request.name = "gradient " + std::to_string(i);
    request.input = request.output = buffer_view(std::span(gradients[i]));
    request.reduction = Reduction::average;
    handles.push_back(negotiator.submit(std::move(request)));
  }
  for (auto& handle : handles) must(handle.wait());
  return milliseconds_since(began);
}

double one_by_one(Group& group, Gradients& gradients) {
  const auto began = std::chrono::steady_clock::now();
  for (size_t i = gradients.size(); i-- > 0;)
    must(group.allreduce(gradients[i], Reduction::average));
  return milliseconds_since(began);
}

void run_rank(int rank, TcpOptions options, int rounds) {
  options.rank = rank;
  auto group = must(join_over_tcp(options));
  const auto other = must(group->split(0));
  const auto negotiator = must(gradients::Negotiator::start(std::move(group)));
  Gradients gradients;
  for (const size_t size : resnet_50()) gradients.emplace_back(size, 1.0f);
  uint64_t before = 0;
  constexpr int warm_up = 3;
  for (int round = -warm_up; round < rounds; ++round) {
    const double ours = by_name(*negotiator, gradients);
    const double peer = one_by_one(*other, gradients);
    const uint64_t collectives = negotiator->counters().collectives;
    if (rank == 0 && round >= 0) {
      std::printf("{\"side\": \"ours\", \"milliseconds\": %.3f, \"collectives\": %llu}\n", ours,
                  static_cast<unsigned long long>(collectives - before));
      std::printf("{\"side\": \"peer\", \"milliseconds\": %.3f, \"collectives\": %zu}\n", peer,
                  gradients.size());
    }
    before = collectives;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: reduce_by_name RANKS shared|tcp ROUNDS\n");
    return 2;
  }
  const int ranks = std::atoi(argv[1]);
  TcpOptions options;
  const int own = int(getpid());
  for (int rank = 0; rank < ranks; ++rank) {
    options.endpoints.push_back({"127." + std::to_string(1 + own / 250 % 250) + "." +
                                     std::to_string(1 + own % 250) + "." + std::to_string(1 + rank),
                                 7830});
  }
  options.shared_value = "bench";
  options.join_deadline = 30s;
  options.peer_timeout = 30s;
  options.share_memory = argv[2] == std::string("shared");
  options.group.deterministic = true;
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() == 0) {
      run_rank(rank, options, std::atoi(argv[3]));
      return 0;
    }
  }
  run_rank(0, options, std::atoi(argv[3]));
  std::fflush(stdout);
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed += status != 0;
  return failed;
}
