#include "gradients/fusion/carrier.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/check.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/reduce/reduce.hpp"

namespace trainyard::gradients {
namespace {

using collectives::bytes_of;

// The fusion buffer is registered, so ranks on one host read it in place. With large chunks, of
// which one is reduced while another is read, the ranks wait for each other a few times. With the
// smaller chunks of the table they would wait a hundred times, each time until the training threads
// on the same cores let the other ranks run.
constexpr size_t kChunksOfBuffer = 4;
// below this the chunks of the table are as large
constexpr size_t kChunkBytesMin = size_t{1} << 20;
// A message lists at most this many tensors.
constexpr size_t kNamesMax = 3;

std::string names_of(std::span<const Carrier::Part> parts) {
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kNamesMax; ++i)
    text.append(i == 0 ? "" : ", ").append(parts[i].agreement->signature.name);
  if (parts.size() > kNamesMax)
    text += " and " + std::to_string(parts.size() - kNamesMax) + " more";
  return text;
}

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

const Signature& signature_of(const Carrier::Part& part) { return part.agreement->signature; }

// Returns the output of a part: the given buffer, or one allocated now that its size is known.
// Null: no output.
std::byte* output_of(Carrier::Part& part, size_t elements, Outcome outcome) {
  if (!part.request) return nullptr;
  const Request& request = *part.request;
  void* memory = request.output.data;
  if (!memory && request.allocate) {
    memory = request.allocate(elements, outcome);
    if (!memory && elements > 0) {
      part.result = exhausted("no memory for the " + std::to_string(elements) + " elements of " +
                              request.name);
      return nullptr;
    }
  } else if (request.output.count != elements && !(request.allocate && elements == 0)) {
    part.result =
        invalid("the output of " + request.name + " holds " + std::to_string(request.output.count) +
                " elements where " + std::to_string(elements) + " are needed");
    return nullptr;
  }
  part.result = std::move(outcome);
  return static_cast<std::byte*>(memory);
}

size_t total(const std::vector<size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

}  // namespace

Carrier::Carrier(collectives::Group& world, const std::function<void(const Event&)>& on_event,
                 Now now)
    : on_event_(on_event),
      now_(std::move(now)),
      rank_(world.rank()),
      activity_(world.count_elsewhere()) {
  shared_.emplace(0, std::make_unique<Shared>(&world));
}

std::chrono::nanoseconds Carrier::begin() const {
  return on_event_ ? now_() : std::chrono::nanoseconds{};
}

void Carrier::event(Phase phase, std::span<Part> parts, std::chrono::nanoseconds begin) {
  if (!on_event_) return;
  const auto end = now_();
  for (const Part& part : parts) {
    if (part.request)
      on_event_({phase, signature_of(part).operation, signature_of(part).name, begin, end});
  }
}

Result<void> Carrier::run(Shared& shared, std::span<Part> parts, collectives::Call call) {
  call.reducing.name = names_of(parts);
  const auto began = begin();
  TRY(shared.group->run(call));
  event(Phase::communicate, parts, began);
  return ok();
}

Result<void> Carrier::carry_out(std::span<Part> parts) {
  TRY(execute(parts));
  activity_.count();
  activity_.pass();
  return ok();
}

void Carrier::note_outstanding(bool outstanding) {
  if (!activity_.describes()) return;
  if (outstanding == outstanding_) return activity_.beat();
  outstanding_ = outstanding;
  const auto now = std::chrono::steady_clock::now();
  if (!outstanding) return activity_.leave(now, false);
  activity_.announce(now);
  activity_.enter(CallKind::named_tensors, 0, 0);
}

Result<void> Carrier::execute(std::span<Part> parts) {
  const Signature& first = signature_of(parts.front());
  if (first.operation == Operation::add_set || first.operation == Operation::remove_set)
    return change_sets(parts.front());
  const auto found = shared_.find(first.set);
  if (found == shared_.end()) return ok();
  Shared& shared = *found->second;
  const auto members = size_t(shared.group->size());
  const auto me = size_t(shared.group->rank());
  switch (first.operation) {
    case Operation::allreduce:
      if (first.compression.kind != Compression::Kind::none) return compressed(shared, parts);
      return allreduce(shared, parts);
    case Operation::adasum:
      return adasum(shared, parts);
    case Operation::broadcast:
      return broadcast(shared, parts);
    case Operation::all_gather:
      return all_gather(shared, parts, members, me);
    case Operation::reduce_scatter:
      return reduce_scatter(shared, parts, members, me);
    case Operation::all_to_all:
      return all_to_all(shared, parts.front(), members, me);
    case Operation::barrier:
      TRY(run(shared, parts, collectives::calls::barrier()));
      parts.front().result = Outcome{};
      return ok();
    default:
      parts.front().result = Outcome{{}, parts.front().agreement->last, -1};
      return ok();
  }
}

Result<void> Carrier::allreduce(Shared& shared, std::span<Part> parts) {
  const Signature& first = signature_of(parts.front());
  const collectives::ReduceOptions reducing{
      .reduction = first.reduction, .prescale = first.prescale, .name = {}};
  if (parts.size() == 1 && parts[0].request) {
    const Request& request = *parts[0].request;
    TRY(run(shared, parts, collectives::calls::allreduce(request.input, request.output, reducing)));
    if (first.postscale != 1)
      collectives::scale(first.type, static_cast<std::byte*>(request.output.data),
                         request.output.count, first.postscale);
    parts[0].result = Outcome{};
    return ok();
  }
  const Staged staged = copy_in(shared, parts);
  collectives::Call call = collectives::calls::allreduce(
      collectives::BufferView{staged.bytes, staged.elements, first.type}, reducing);
  if (shared.on_one_host)
    call.chunk_bytes =
        std::max(kChunkBytesMin, staged.elements * bytes_of(first.type) / kChunksOfBuffer);
  TRY(run(shared, parts, std::move(call)));
  copy_out(staged, parts);
  return ok();
}

// Copies the tensors one after the other. If this rank has joined, writes zeros.
Carrier::Staged Carrier::copy_in(Shared& shared, std::span<Part> parts) {
  const size_t element_bytes = bytes_of(signature_of(parts.front()).type);
  Staged staged;
  for (const Part& part : parts) staged.elements += signature_of(part).elements();
  staged.bytes = shared.buffer.bytes(staged.elements * element_bytes);
  const auto began = begin();
  std::byte* at = staged.bytes;
  for (const Part& part : parts) {
    const size_t bytes = signature_of(part).elements() * element_bytes;
    if (part.request) {
      copy_bytes(at, part.request->input.data, bytes);
    } else {
      std::memset(at, 0, bytes);
    }
    at += bytes;
  }
  event(Phase::copy_in, parts, began);
  return staged;
}

void Carrier::copy_out(const Staged& staged, std::span<Part> parts) {
  const Signature& first = signature_of(parts.front());
  const size_t element_bytes = bytes_of(first.type);
  const auto began = begin();
  const std::byte* at = staged.bytes;
  for (Part& part : parts) {
    const size_t count = signature_of(part).elements();
    if (part.request) {
      auto* output = static_cast<std::byte*>(part.request->output.data);
      copy_bytes(output, at, count * element_bytes);
      if (first.postscale != 1) collectives::scale(first.type, output, count, first.postscale);
      part.result = Outcome{};
    }
    at += count * element_bytes;
  }
  event(Phase::copy_out, parts, began);
}

Result<void> Carrier::compressed(Shared& shared, std::span<Part> parts) {
  const Signature& first = signature_of(parts.front());
  std::vector<CompressedTensor> tensors;
  for (Part& part : parts) {
    CompressedTensor& tensor = tensors.emplace_back();
    const Signature& signature = signature_of(part);
    tensor.key = signature.name;
    tensor.shape = {signature.rows(), signature.row_elements()};
    tensor.prescale = first.prescale;
    tensor.postscale = first.postscale;
    if (!part.request) continue;
    tensor.input = static_cast<const float*>(part.request->input.data);
    tensor.output = static_cast<float*>(part.request->output.data);
    part.result = Outcome{};
  }
  const auto began = begin();
  TRY(shared.compressor.allreduce(tensors, first.compression, first.reduction, names_of(parts)));
  event(Phase::communicate, parts, began);
  return ok();
}

// Each tensor of the buffer is combined separately.
Result<void> Carrier::adasum(Shared& shared, std::span<Part> parts) {
  const Signature& first = signature_of(parts.front());
  std::vector<size_t> counts;
  for (const Part& part : parts) counts.push_back(signature_of(part).elements());
  const Staged staged = copy_in(shared, parts);
  const auto began = begin();
  if (first.prescale != 1)
    collectives::scale(first.type, staged.bytes, staged.elements, first.prescale);
  TRY(gradients::adasum(*shared.group, {staged.bytes, staged.elements, first.type}, counts,
                        adasum_workspace_, names_of(parts)));
  event(Phase::communicate, parts, began);
  copy_out(staged, parts);
  return ok();
}

Result<void> Carrier::broadcast(Shared& shared, std::span<Part> parts) {
  const Signature& first = signature_of(parts.front());
  const auto bytes_in = [](const Part& part) {
    return signature_of(part).elements() * bytes_of(signature_of(part).type);
  };
  int root = first.root;
  if (!shared.ranks.empty())
    root = int(std::lower_bound(shared.ranks.begin(), shared.ranks.end(), root) -
               shared.ranks.begin());
  const bool is_root = first.root == rank_;
  const auto source_of = [](const Request& request) {
    return request.input.data ? request.input.data : request.output.data;
  };
  if (parts.size() == 1 && parts[0].request && parts[0].request->output.data) {
    const Request& request = *parts[0].request;
    if (is_root) copy_bytes(request.output.data, source_of(request), bytes_in(parts[0]));
    TRY(run(shared, parts,
            collectives::calls::broadcast(
                {request.output.data, bytes_in(parts[0]), collectives::Type::u8}, root)));
    parts[0].result = Outcome{};
    return ok();
  }
  size_t bytes = 0;
  for (const Part& part : parts) bytes += bytes_in(part);
  std::byte* all = shared.buffer.bytes(bytes);
  auto began = begin();
  std::byte* at = all;
  for (const Part& part : parts) {
    if (is_root && part.request) copy_bytes(at, source_of(*part.request), bytes_in(part));
    at += bytes_in(part);
  }
  if (is_root) event(Phase::copy_in, parts, began);
  TRY(run(shared, parts, collectives::calls::broadcast({all, bytes, collectives::Type::u8}, root)));
  began = begin();
  at = all;
  for (Part& part : parts) {
    if (part.request) {
      if (part.request->output.data) copy_bytes(part.request->output.data, at, bytes_in(part));
      part.result = Outcome{};
    }
    at += bytes_in(part);
  }
  event(Phase::copy_out, parts, began);
  return ok();
}

Result<void> Carrier::all_gather(Shared& shared, std::span<Part> parts, size_t members, size_t me) {
  const auto row_bytes = [](const Part& part) {
    return signature_of(part).row_elements() * bytes_of(signature_of(part).type);
  };
  std::vector<std::byte*> outputs;
  std::vector<size_t> counts(members);  // bytes
  for (Part& part : parts) {
    const auto& rows = part.agreement->rows;
    for (size_t member = 0; member < members; ++member)
      counts[member] += rows[member] * row_bytes(part);
    const uint64_t all_rows = std::accumulate(rows.begin(), rows.end(), uint64_t{0});
    outputs.push_back(
        output_of(part, all_rows * signature_of(part).row_elements(), {rows, -1, -1}));
  }
  const size_t bytes = total(counts);
  if (parts.size() == 1 && outputs[0]) {
    return run(shared, parts,
               collectives::calls::all_gather(
                   {parts[0].request->input.data, counts[me], collectives::Type::u8},
                   {outputs[0], bytes, collectives::Type::u8}, counts));
  }
  std::byte* all = shared.buffer.bytes(bytes);
  std::byte* mine =
      all + std::accumulate(counts.begin(), counts.begin() + ptrdiff_t(me), size_t{0});
  auto began = begin();
  std::byte* at = mine;
  for (const Part& part : parts) {
    const size_t size = part.agreement->rows[me] * row_bytes(part);
    if (part.request) copy_bytes(at, part.request->input.data, size);
    at += size;
  }
  event(Phase::copy_in, parts, began);
  TRY(run(shared, parts,
          collectives::calls::all_gather({mine, counts[me], collectives::Type::u8},
                                         {all, bytes, collectives::Type::u8}, counts)));
  began = begin();
  const std::byte* from = all;
  std::vector<size_t> written(parts.size());
  for (size_t member = 0; member < members; ++member) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const size_t size = parts[i].agreement->rows[member] * row_bytes(parts[i]);
      if (outputs[i]) copy_bytes(outputs[i] + written[i], from, size);
      written[i] += size;
      from += size;
    }
  }
  event(Phase::copy_out, parts, began);
  return ok();
}

namespace {

// Returns the elements of a tensor that a member receives from reduce_scatter. The rows are divided
// as evenly as possible; the first members get one more.
collectives::plan::Range piece_of(const Signature& signature, size_t member, size_t members) {
  const auto rows = collectives::plan::piece(signature.rows(), int(member), int(members));
  const size_t row = signature.row_elements();
  return {rows.begin * row, rows.end * row};
}

// Copies the pieces of all members, in their order; writes zeros for a tensor that this rank did
// not submit.
void copy_pieces(std::byte* to, std::span<const Carrier::Part> parts, size_t members) {
  for (size_t member = 0; member < members; ++member) {
    for (const auto& part : parts) {
      const Signature& signature = part.agreement->signature;
      const size_t element_bytes = bytes_of(signature.type);
      const collectives::plan::Range range = piece_of(signature, member, members);
      const size_t size = range.size() * element_bytes;
      if (part.request) {
        copy_bytes(
            to,
            static_cast<const std::byte*>(part.request->input.data) + range.begin * element_bytes,
            size);
      } else {
        std::memset(to, 0, size);
      }
      to += size;
    }
  }
}

}  // namespace

Result<void> Carrier::reduce_scatter(Shared& shared, std::span<Part> parts, size_t members,
                                     size_t me) {
  const Signature& first = signature_of(parts.front());
  const size_t element_bytes = bytes_of(first.type);
  const auto piece = [&](const Part& part, size_t member) {
    return piece_of(signature_of(part), member, members);
  };
  std::vector<std::byte*> outputs;
  std::vector<size_t> counts(members);
  for (Part& part : parts) {
    std::vector<uint64_t> rows;
    for (size_t member = 0; member < members; ++member) {
      counts[member] += piece(part, member).size();
      rows.push_back(
          collectives::plan::piece(signature_of(part).rows(), int(member), int(members)).size());
    }
    outputs.push_back(output_of(part, piece(part, me).size(), {std::move(rows), -1, -1}));
  }
  const collectives::ReduceOptions reducing{
      .reduction = first.reduction, .prescale = first.prescale, .name = {}};
  const size_t elements = total(counts);
  if (parts.size() == 1 && outputs[0]) {
    TRY(run(shared, parts,
            collectives::calls::reduce_scatter(
                parts[0].request->input, {outputs[0], counts[me], first.type}, reducing, counts)));
    if (first.postscale != 1)
      collectives::scale(first.type, outputs[0], counts[me], first.postscale);
    return ok();
  }
  std::byte* all = shared.buffer.bytes((elements + counts[me]) * element_bytes);
  std::byte* mine = all + elements * element_bytes;
  auto began = begin();
  copy_pieces(all, parts, members);
  event(Phase::copy_in, parts, began);
  TRY(run(shared, parts,
          collectives::calls::reduce_scatter({all, elements, first.type},
                                             {mine, counts[me], first.type}, reducing, counts)));
  began = begin();
  if (first.postscale != 1) collectives::scale(first.type, mine, counts[me], first.postscale);
  const std::byte* from = mine;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t size = piece(parts[i], me).size() * element_bytes;
    if (outputs[i]) copy_bytes(outputs[i], from, size);
    from += size;
  }
  event(Phase::copy_out, parts, began);
  return ok();
}

Result<void> Carrier::all_to_all(Shared& shared, Part& part, size_t members, size_t me) {
  const Signature& signature = signature_of(part);
  const size_t row = signature.row_elements();
  const auto& rows = part.agreement->rows;
  std::vector<size_t> counts, received_counts;
  Outcome outcome;
  for (size_t member = 0; member < members; ++member) {
    counts.push_back(rows[me * members + member] * row);
    outcome.rows.push_back(rows[member * members + me]);
    received_counts.push_back(outcome.rows.back() * row);
  }
  const size_t elements = total(received_counts);
  std::byte* output = output_of(part, elements, std::move(outcome));
  // A rank without memory for the output still takes part, since the others would wait for it.
  if (!output) output = shared.buffer.bytes(elements * bytes_of(signature.type));
  return run(
      shared, {&part, 1},
      collectives::calls::all_to_all({part.request->input.data, total(counts), signature.type},
                                     {output, elements, signature.type}, counts, received_counts));
}

Result<void> Carrier::change_sets(Part& part) {
  const Signature& signature = signature_of(part);
  Outcome outcome;
  if (signature.operation == Operation::add_set) {
    outcome.set = next_set_++;
    const auto& ranks = signature.splits;
    const bool belongs = std::find(ranks.begin(), ranks.end(), uint64_t(rank_)) != ranks.end();
    auto group = TRY(shared_.at(0)->group->split(belongs ? 0 : -1).in("add_set"));
    if (belongs) {
      auto shared = std::make_unique<Shared>(std::move(group));
      shared->ranks.assign(ranks.begin(), ranks.end());
      shared_.emplace(outcome.set, std::move(shared));
    }
  } else {
    shared_.erase(signature.root);
  }
  part.result = std::move(outcome);
  return ok();
}

}  // namespace trainyard::gradients
