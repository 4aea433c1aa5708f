#include "collectives/run.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "collectives/reduce/reduce.hpp"

namespace trainyard::collectives {

using plan::Action;

namespace {

// Small enough that the operands are still in the first-level cache when the sum is written over
// them.
constexpr size_t kGivenBlockBytes = 8192;

}  // namespace

std::span<std::byte> Workspace::scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    scratch_bytes_ = bytes;
  }
  return {scratch_.get(), bytes};
}

Tag tag_of(Tag operation, const plan::Plan& plan, const plan::Step& step) {
  // Odd, so that different numbers give different labels.
  constexpr uint64_t spread = 0x9e3779b97f4a7c15;
  return {operation.operation, operation.label + message_number(plan, step) * spread};
}

Run::Run(const plan::Plan& plan, std::span<const int> team, Tag tag, const Buffers& buffers,
         Workspace& workspace, Transport& transport)
    : plan_(plan),
      team_(team),
      tag_(tag),
      buffers_(buffers),
      element_bytes_(bytes_of(buffers.type)),
      workspace_(workspace),
      transport_(transport),
      rounds_(plan::rounds(plan)) {
  workspace_.others.clear();
  workspace_.kept.clear();
  workspace_.given.clear();
  // Each rank begins with a different peer; if all began with the first, the last rank would finish
  // much later.
  for (int k = 1; k < plan_.ranks; ++k)
    workspace_.others.push_back(rank_of((plan_.rank + k) % plan_.ranks));
  begin_round();
}

void Run::begin_round() {
  workspace_.steps.clear();
  position_ = 0;
  if (round_ == rounds_) return;
  plan::add_round(plan_, round_, workspace_.steps);
  // Values received in a round are reduced in the same round, so scratch memory is free at the
  // beginning of a round.
  size_t kept = 0;
  for (const plan::Step& step : workspace_.steps)
    kept += step.action == Action::receive || step.guarded ? step.range.size() : 0;
  receive_scratch_ = workspace_.scratch(kept * element_bytes_).data();
}

Result<bool> Run::advance() {
  bool moved = false;  // since the last step that had to wait
  for (;;) {
    const bool steps_done = position_ == workspace_.steps.size();
    bool done = true;
    if (!steps_done) {
      done = carry_out(workspace_.steps[position_]);
    } else if (round_ == rounds_) {
      done = transport_.all_sent();
    } else {
      done = transport_.all_received();
    }
    if (!done) {
      if (moved) return false;
      TRY(transport_.advance());
      moved = true;
      continue;
    }
    moved = false;
    if (!steps_done) {
      ++position_;
    } else if (round_ == rounds_) {
      return true;
    } else {
      ++round_;
      begin_round();
    }
  }
}

bool Run::carry_out(const plan::Step& step) {
  const size_t bytes = step.range.size() * element_bytes_;
  switch (step.action) {
    case Action::send:
      send(step);
      return true;
    case Action::receive:
      transport_.receive(rank_of(step.peer), tag_of(tag_, plan_, step), {receive_scratch_, bytes});
      receive_scratch_ += bytes;
      workspace_.kept.push_back(rank_of(step.peer));
      return true;
    case Action::receive_into:
      transport_.receive_into(rank_of(step.peer), tag_of(tag_, plan_, step),
                              {output_of(step.range), bytes});
      return true;
    case Action::reduce:
      return reduce_values(step);
  }
  return true;
}

void Run::send(const plan::Step& step) {
  const size_t bytes = step.range.size() * element_bytes_;
  const std::byte* const from = step.from_input ? input_of(step.range) : output_of(step.range);
  const Tag tag = tag_of(tag_, plan_, step);
  if (step.peer != plan::kAllRanks) {
    const int peer = rank_of(step.peer);
    // A peer may write to the output only when the output is also the input.
    if (step.use == plan::Use::reduced_in_place && from == output_of(step.range))
      return transport_.send_writable(peer, tag, {output_of(step.range), bytes});
    return transport_.send(std::span(&peer, 1), tag, {from, bytes});
  }
  const std::vector<int>& given = workspace_.given;
  if (given.empty() || !(given_ == step.range))
    return transport_.send(workspace_.others, tag, {from, bytes});
  for (const int peer : workspace_.others) {
    if (std::find(given.begin(), given.end(), peer) != given.end()) {
      transport_.notify(peer, tag, {from, bytes});
    } else {
      transport_.send(std::span(&peer, 1), tag, {from, bytes});
    }
  }
}

void Run::combine(std::byte* out, const plan::Step& step) {
  std::vector<const std::byte*>& operands = workspace_.operands;
  const int divisor = step.last ? buffers_.divisor : 0;
  workspace_.given.clear();
  workspace_.addresses.clear();
  for (int k = 0; k < step.operands; ++k) {
    const int peer = workspace_.kept[size_t(k)];
    std::byte* const address = transport_.writable(peer);
    if (address == nullptr) continue;
    workspace_.given.push_back(peer);
    workspace_.addresses.push_back(address);
  }
  if (workspace_.given.empty())
    return collectives::reduce_values(buffers_.type, buffers_.reduction, out, operands,
                                      step.range.size(), divisor);
  given_ = step.range;
  const size_t block = kGivenBlockBytes / element_bytes_;
  for (size_t begin = 0; begin < step.range.size(); begin += block) {
    const size_t size = std::min(block, step.range.size() - begin);
    const size_t bytes = size * element_bytes_;
    collectives::reduce_values(buffers_.type, buffers_.reduction, out, operands, size, divisor);
    for (std::byte*& address : workspace_.addresses) {
      std::memcpy(address, out, bytes);
      address += bytes;
    }
    for (const std::byte*& operand : operands) operand += bytes;
    out += bytes;
  }
}

bool Run::reduce_values(const plan::Step& step) {
  std::byte* const out = output_of(step.range);
  if (guarded_result_ != nullptr) {
    if (!transport_.all_sent()) return false;
    std::copy_n(guarded_result_, step.range.size() * element_bytes_, out);
    guarded_result_ = nullptr;
    return true;
  }
  std::vector<int>& kept = workspace_.kept;
  std::vector<const std::byte*>& operands = workspace_.operands;
  CHECK(kept.size() >= step.operands, "the operands of a reduction were received in this round");
  operands.clear();
  const std::byte* ours = step.from_input ? input_of(step.range) : out;
  for (int k = 0; k < step.operands; ++k) {
    if (k == step.peer) operands.push_back(ours);
    const std::byte* theirs = transport_.arrived(kept[size_t(k)]);
    if (theirs == nullptr) return false;
    operands.push_back(theirs);
  }
  if (step.peer == step.operands) operands.push_back(ours);
  const bool guarded = step.guarded && ours == out && !transport_.all_sent();
  if (guarded) guarded_result_ = receive_scratch_;
  combine(guarded ? guarded_result_ : out, step);
  for (int k = 0; k < step.operands; ++k) transport_.release(kept[size_t(k)]);
  kept.erase(kept.begin(), kept.begin() + step.operands);
  return !guarded;
}

Result<void> Run::finish() {
  while (!TRY(advance())) TRY(transport_.wait());
  return ok();
}

}  // namespace trainyard::collectives
