// The ranks of one distributed program, as one of them holds it: sums, copies and waits that all of them take
// part in.
//
//   auto group = TRY(join_over_tcp({.endpoints = {{"algo-1", 7830}, {"algo-2", 7830}}, .rank = 0,
//   .shared_value = job})); TRY(group->allreduce(gradients, Reduction::sum));   // now the same on all ranks,
//   bit for bit
//
// All ranks call the same operations in the same order with the same sizes; a call returns when this rank's
// part is done. The order of additions depends on plan, number of ranks and element alone, never on who came
// first: the same inputs give the same bits, on every rank and in every run.
//
// Threads: a group is confined to one thread at a time.
// Errors:  unavailable when a rank died, hangs or cannot be reached; cancelled when the caller's `cancelled`
// said so;
//          conflict when a peer is in another operation; corrupt when its bytes make no sense. The message
//          names the rank. The first error is the group's last word: every later call returns it again.
// Units:   sizes in elements or bytes as the type says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::collectives {

class Transport;

enum class Reduction { sum, minimum, maximum };

class Group {
 public:
  explicit Group(std::unique_ptr<Transport> transport);
  ~Group();  // takes leave of the others, who may go on without this rank until they need it

  int rank() const;
  int size() const;

  // In place: every rank's values combined element by element.
  Result<void> allreduce(std::span<float> values, Reduction reduction = Reduction::sum);
  Result<void> allreduce(std::span<double> values, Reduction reduction = Reduction::sum);
  // `bytes` of `root` to all; the others' are overwritten. Equally long everywhere.
  Result<void> broadcast(std::span<std::byte> bytes, int root);
  // What every rank brought, by rank. Equally long everywhere: all.size() == size() * mine.size().
  Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  // The same for texts of any length. Limit: gather_bytes_max for all of them together.
  Result<std::vector<std::string>> all_gather(std::string_view mine);
  // Returns when every rank has called it.
  Result<void> barrier();

  // Ends the group because this rank cannot go on: the others' operations fail with our name and `why`, at
  // once.
  void abandon(std::string_view why);

  // A bound on what one peer's announced length can make us allocate.
  static constexpr uint64_t gather_bytes_max = uint64_t{256} << 20;

 private:
  template <class Number>
  Result<void> allreduce_numbers(std::span<Number> values, Reduction reduction);

  std::unique_ptr<Transport> transport_;
  std::vector<std::byte> scratch_;  // kept between operations: gradients have the same size each time
  uint64_t operations_ = 0;
};

struct Endpoint {
  std::string host;  // a name or an address
  uint16_t port = 0;
};

struct TcpOptions {
  std::vector<Endpoint> endpoints;  // of all ranks, in their order; the same on all
  int rank = 0;                     // which of them we are
  // Keeps ranks of different jobs apart that meet at one address by mistake. Sent as it is: no secret against
  // somebody who listens on the network. At most shared_value_bytes_max.
  std::string shared_value;
  // How long the slowest host may take to come up and become resolvable (SageMaker's own tools give names 15
  // min).
  Duration join_deadline = 10min;
  // How long nothing may come from a peer that we wait for: it may read a large shard first, but not for
  // ever. A peer whose machine is gone is found far sooner, by TCP keepalive (dead_peer_max).
  Duration silence_max = 10min;
  // Asked at least every cancel_check_interval while waiting; true ends the wait with `cancelled`. May be
  // empty.
  std::function<bool()> cancelled;

  static constexpr size_t shared_value_bytes_max = 256;
  static constexpr Duration cancel_check_interval = 100ms;  // what a person does not notice
  static constexpr Duration dead_peer_max =
      20s;  // longer than a lost packet's retries, shorter than a person's patience
};

// Meets all other ranks: listens at our own endpoint, connects to those before us until they answer.
// Errors: also invalid, when the options cannot be right.
Result<std::unique_ptr<Group>> join_over_tcp(TcpOptions options);

// Groups of `size` ranks inside this process, one for each thread that plays a rank. For tests and single
// hosts.
std::vector<std::unique_ptr<Group>> join_in_memory(int size);

}  // namespace trainyard::collectives
