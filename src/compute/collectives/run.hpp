// Carries out a plan: the only loop that turns steps into I/O.
//
// Threads: confined to one thread at a time. Lifetime: buffers, workspace and transport outlive the run.
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

// What the steps' ranges point into. Input and output may be one.
struct Buffers {
  const std::byte* input = nullptr;
  size_t input_begin = 0;  // the element that lies first in input
  std::byte* output = nullptr;
  size_t output_begin = 0;  // the element that lies first in output
  Type type = Type::u8;
  Reduction reduction = Reduction::sum;
  int divisor = 0;  // of an average; 0 for all else
};

// Memory that a run needs for a while and that the next run can use again. What is in it means nothing.
class Workspace {
 public:
  std::span<std::byte> scratch(size_t bytes);

  plan::Steps steps;
  std::vector<int> others;  // in the order in which they are sent to
  std::vector<int> kept;    // peers whose messages wait for a fold, the oldest first
  std::vector<const std::byte*> operands;
  std::vector<int> given;          // peers in whose memory the last fold has written its result
  std::vector<std::byte*> places;  // where

 private:
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
};

// The tag of one step's message: of its operation, and of its place in it.
Tag tag_of(Tag operation, const plan::Plan& plan, const plan::Step& step);

class Run {
 public:
  // team[i] is the rank, in the transport, of the plan's rank i; empty where they are the same.
  Run(const plan::Plan& plan, std::span<const int> team, Tag tag, const Buffers& buffers,
      Workspace& workspace, Transport& transport);

  // Gets as far as it can without waiting. True when the plan is done and the buffers are the caller's again.
  Result<bool> advance();
  // Gets to the end.
  Result<void> finish();

 private:
  int rank_of(int member) const { return team_.empty() ? member : team_[size_t(member)]; }
  void begin_round();
  // False where it must wait for something.
  bool carry_out(const plan::Step& step);
  bool fold(const plan::Step& step);
  void send(const plan::Step& step);
  // The fold itself, to our place and to those that were lent to us.
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
  size_t position_ = 0;         // the next step of this round that was not carried out
  std::byte* room_ = nullptr;   // where the next receive of this round may be kept
  plan::Range given_;           // the result of the last fold that was written for others too
  std::byte* aside_ = nullptr;  // a guarded fold's result, until it may go to its place
};

}  // namespace trainyard::collectives
