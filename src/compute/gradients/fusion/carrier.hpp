// A Carrier carries out agreements: it copies tensors into the fusion buffer, runs one collective
// operation, and copies the results out. Private to fusion/.
//
// Threads: confined to one at a time.
// Errors:  those of the group, naming the tensors; the carrier cannot be used afterwards. An error
// of this rank only (no memory for an output) is in the result of its part.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/group_buffer.hpp"
#include "gradients/adasum/adasum.hpp"
#include "gradients/compress/compressor.hpp"
#include "gradients/fusion/batches.hpp"
#include "gradients/fusion/negotiator.hpp"

namespace trainyard::gradients {

class Carrier {
 public:
  using Now = std::function<std::chrono::nanoseconds()>;
  // Lifetime: all arguments outlive the carrier. `on_event` may be empty; then `now` is not called.
  Carrier(collectives::Group& world, const std::function<void(const Event&)>& on_event, Now now);

  // A tensor of a batch, as this rank has it.
  struct Part {
    const Agreement* agreement = nullptr;
    const Request* request = nullptr;  // null: this rank has joined, or is not a member of the set
    std::optional<Result<Outcome>> result;
  };
  // Carries out a batch. Every part with a request gets a result, unless the whole batch fails.
  Result<void> carry_out(std::span<Part> parts);
  // Records in the activity table whether this rank has submitted tensors that are not done.
  void note_outstanding(bool outstanding);

 private:
  // The group of a set, and the buffers that only its tensors use.
  struct Shared {
    explicit Shared(std::unique_ptr<collectives::Group> group) : Shared(group.get()) {
      own = std::move(group);
    }
    explicit Shared(collectives::Group* group)
        : group(group),
          on_one_host(std::count(group->hosts().begin(), group->hosts().end(), group->hosts()[0]) ==
                      group->size()),
          buffer(*group),
          compressor(*group) {}

    std::unique_ptr<collectives::Group> own;  // null for set 0; destroyed after the other members
    collectives::Group* const group;
    const bool on_one_host;
    std::vector<int> ranks;  // ranks in the whole group, by rank of this group; empty: the same
    collectives::GroupBuffer buffer;
    Compressor compressor;
  };
  struct Staged {
    std::byte* bytes = nullptr;
    size_t elements = 0;
  };

  Staged copy_in(Shared& shared, std::span<Part> parts);
  void copy_out(const Staged& staged, std::span<Part> parts);
  Result<void> execute(std::span<Part> parts);
  Result<void> run(Shared& shared, std::span<Part> parts, collectives::Call call);
  void event(Phase phase, std::span<Part> parts, std::chrono::nanoseconds begin);
  std::chrono::nanoseconds begin() const;

  Result<void> allreduce(Shared& shared, std::span<Part> parts);
  Result<void> compressed(Shared& shared, std::span<Part> parts);
  Result<void> adasum(Shared& shared, std::span<Part> parts);
  Result<void> broadcast(Shared& shared, std::span<Part> parts);
  Result<void> all_gather(Shared& shared, std::span<Part> parts, size_t members, size_t me);
  Result<void> reduce_scatter(Shared& shared, std::span<Part> parts, size_t members, size_t me);
  Result<void> all_to_all(Shared& shared, Part& part, size_t members, size_t me);
  Result<void> change_sets(Part& part);

  const std::function<void(const Event&)>& on_event_;
  const Now now_;
  const int rank_;
  // Counts tensors only: the group also runs the negotiation, which continues while no tensor is
  // reduced.
  collectives::ActivityCounter& activity_;
  bool outstanding_ = false;  // as recorded last
  // by set; the sets of which this rank is a member
  std::map<int, std::unique_ptr<Shared>> shared_;
  int next_set_ = 1;
  AdasumWorkspace adasum_workspace_;
};

}  // namespace trainyard::gradients
