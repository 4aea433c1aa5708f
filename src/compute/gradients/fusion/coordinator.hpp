// A Coordinator is rank 0's part of the negotiation: it collects the requests of the ranks, and
// answers which tensors all of them reduce.
//
// It does no I/O: its input are reports, and its output is an answer. Earlier agreements are in the
// response cache, which is equal on all ranks; the coordinator stores the tensors that only some
// ranks have requested yet.
//
// Threads: confined to one at a time. Errors: corrupt, naming the rank whose report is invalid.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "gradients/fusion/messages.hpp"
#include "gradients/fusion/response_cache.hpp"

namespace trainyard::gradients {

// The members of each set, in ascending order; set 0 contains all ranks.
using Sets = std::map<int, std::vector<int>>;

// Rejects a request that is invalid on any rank: an unknown set, a root outside of it, splits that
// do not add up.
Result<void> check(const Signature& signature, const Sets& sets, int rank);

// Returns true if a tensor can be reduced while some ranks have joined and contribute zeros. An
// operation that moves rows would lack the rows of those ranks, so its result would have another
// shape or meaning: it fails, as in Horovod.
bool allows_joined_ranks(const Signature& signature);

class Coordinator {
 public:
  struct Limits {
    Duration stall_report_after{};
    Duration stall_fail_after{};
  };
  Coordinator(int ranks, Limits limits) : ranks_(ranks), limits_(limits) {}

  Result<Answer> answer(std::span<const Report> reports, const Sets& sets,
                        const ResponseCache& cache);

 private:
  struct Row {
    std::map<int, Signature> requests;  // by rank
    uint64_t order = 0;
  };
  struct Joined {
    std::set<int> ranks;
    int last = -1;
  };

  bool complete(const Row& row, const Sets& sets) const;
  std::vector<int> missing(const Row& row, const std::vector<int>& members) const;
  // Describes how the requests differ; empty if they are equal.
  std::string difference(const Row& row) const;
  Agreement agreed(const Row& row, const std::vector<int>& members) const;
  Result<void> add_request(const Signature& request, int rank, const Sets& sets,
                           const ResponseCache& cache, Answer& answer);
  void finish_joins(const Sets& sets, Answer& answer);
  void settle(const Sets& sets, Answer& answer);
  void settle_group(const Row& row, const Sets& sets, Answer& answer);
  void check_for_stalls(std::span<const Report> reports, const Sets& sets, Answer& answer);
  void fail(const std::string& key, std::string fault, Answer& answer);

  const int ranks_;
  const Limits limits_;
  uint64_t orders_ = 0;
  std::map<std::string, Row> rows_;  // by key; bounded by the outstanding requests of the ranks
  std::map<int, Joined> joined_;     // by set
};

}  // namespace trainyard::gradients
