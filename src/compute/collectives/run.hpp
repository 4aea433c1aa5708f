// Executes a plan: the only loop that turns steps into I/O.
//
// Threads: confined to one thread at a time. Lifetime: buffers, workspace and transport outlive the
// run.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/transport.hpp"
#include "collectives/types.hpp"

namespace trainyard::collectives {

// The buffers to which the ranges of steps refer. Input and output may be the same.
struct Buffers {
  const std::byte* input = nullptr;
  size_t input_begin = 0;  // the first element in input
  std::byte* output = nullptr;
  size_t output_begin = 0;  // the first element in output
  Type type = Type::u8;
  Reduction reduction = Reduction::sum;
  int divisor = 0;  // for averages, else 0
};

// A Workspace is the temporary memory of a run, which the next run reuses. Its content is
// meaningless between runs.
class Workspace {
 public:
  std::span<std::byte> scratch(size_t bytes);

  plan::Steps steps;
  std::vector<int> others;  // the other ranks, in the order of sends
  std::vector<int> kept;    // peers whose messages wait for a reduction, the oldest first
  std::vector<const std::byte*> operands;
  // peers to whose memory the last reduction has written its result
  std::vector<int> given;
  std::vector<std::byte*> addresses;  // the addresses in that memory

 private:
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
};

// Returns the tag of the message of a step.
Tag tag_of(Tag operation, const plan::Plan& plan, const plan::Step& step);

class Run {
 public:
  // team[i] is the transport's rank for the plan's rank i; empty if they are equal.
  Run(const plan::Plan& plan, std::span<const int> team, Tag tag, const Buffers& buffers,
      Workspace& workspace, Transport& transport);

  // Makes progress without blocking. Returns true if the plan is done and the buffers are no longer
  // used.
  Result<bool> advance();
  // Runs to the end.
  Result<void> finish();

 private:
  int rank_of(int member) const { return team_.empty() ? member : team_[size_t(member)]; }
  void begin_round();
  // Return false if the step must wait.
  bool carry_out(const plan::Step& step);
  bool reduce_values(const plan::Step& step);
  void send(const plan::Step& step);
  // Reduces into the output of this rank, and into the memory that peers sent as writable.
  void combine(std::byte* out, const plan::Step& step);
  std::byte* output_of(const plan::Range& range) const {
    return buffers_.output + (range.begin - buffers_.output_begin) * element_bytes_;
  }
  const std::byte* input_of(const plan::Range& range) const {
    return buffers_.input + (range.begin - buffers_.input_begin) * element_bytes_;
  }

  const plan::Plan plan_;
  const std::span<const int> team_;
  const Tag tag_;
  const Buffers buffers_;
  const size_t element_bytes_;
  Workspace& workspace_;
  Transport& transport_;
  const size_t rounds_;
  size_t round_ = 0;
  size_t position_ = 0;                   // the next step of this round
  std::byte* receive_scratch_ = nullptr;  // scratch memory for the next receive of this round
  // the range of the last reduction, whose result was also written to the memory of peers
  plan::Range given_;
  // the result of a guarded reduction, until the output may be written
  std::byte* guarded_result_ = nullptr;
};

}  // namespace trainyard::collectives
