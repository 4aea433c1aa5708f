// Rank 0's part of the negotiation: collects what the ranks ask for, and answers what all of them do.
//
// Touches nothing: reports in, an answer out. What the ranks agreed upon before is in the response cache, which
// every rank holds alike; here is what some ranks asked for and others did not.
//
// Threads: confined to one at a time. Errors: corrupt, naming the rank whose report makes no sense.
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

// The members of each set, ascending; set 0 is everyone.
using Sets = std::map<int, std::vector<int>>;

// What cannot be, whoever asks: a set that is none, a root that does not belong to it, splits that do not add up.
Result<void> check(const Signature& signature, const Sets& sets, int rank);

// Says whether a tensor can be carried out while some rank brings zeros. What moves rows could only be done without
// that rank's rows, so its result would have another shape or meaning: it fails, as in Horovod.
bool goes_with_joined(const Signature& signature);

class Coordinator {
 public:
  struct Limits {
    Duration stall_report_after{};
    Duration stall_fail_after{};
  };
  Coordinator(int ranks, Limits limits) : ranks_(ranks), limits_(limits) {}

  Result<Answer> answer(std::span<const Report> reports, const Sets& sets, const ResponseCache& cache);

 private:
  struct Row {
    std::map<int, Signature> asks;  // by rank
    uint64_t order = 0;
  };
  struct Joined {
    std::set<int> ranks;
    int last = -1;
  };

  bool complete(const Row& row, const Sets& sets) const;
  std::vector<int> missing(const Row& row, const std::vector<int>& members) const;
  // Empty when all ranks ask for the same.
  std::string difference(const Row& row) const;
  Agreement agreed(const Row& row, const std::vector<int>& members) const;
  void settle(const Sets& sets, Answer& answer);
  void settle_group(const Row& row, const Sets& sets, Answer& answer);
  void call_the_roll(std::span<const Report> reports, const Sets& sets, Answer& answer);
  void fail(const std::string& key, std::string fault, Answer& answer);

  const int ranks_;
  const Limits limits_;
  uint64_t orders_ = 0;
  std::map<std::string, Row> rows_;  // by key; bounded by what the ranks have outstanding
  std::map<int, Joined> joined_;     // by set
};

}  // namespace trainyard::gradients
