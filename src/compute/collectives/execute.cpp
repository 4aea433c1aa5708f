#include "collectives/execute.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/plural.hpp"
#include "collectives/reduce/reduce.hpp"

namespace trainyard::collectives {
namespace {

using plan::Algorithm;
using plan::Operation;
using plan::Range;

// Operation numbers that collective operations do not use.
constexpr uint64_t kBetweenTwo = uint64_t{1} << 63;
constexpr uint64_t kMeasuring = uint64_t{1} << 62;

// Adds a word to the digest of an operation, by which ranks detect that they call different
// operations.
uint64_t mixed(uint64_t digest, uint64_t word) {
  digest = (digest ^ word) * 0x9e3779b97f4a7c15;
  return digest ^ digest >> 29;
}

size_t sum_of(const std::vector<size_t>& counts) {
  size_t sum = 0;
  for (const size_t count : counts) sum += count;
  return sum;
}

void copy_numbers(std::byte* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

std::byte* bytes_at(const BufferView& numbers, size_t element = 0) {
  return static_cast<std::byte*>(numbers.data) + element * bytes_of(numbers.type);
}
const std::byte* bytes_at(const ConstBufferView& numbers, size_t element = 0) {
  return static_cast<const std::byte*>(numbers.data) + element * bytes_of(numbers.type);
}

// Returns the number of elements by which the table chooses; equal on all ranks.
size_t elements_of(const Call& call, int ranks) {
  switch (call.operation) {
    case Operation::reduce_scatter:
    case Operation::allreduce:
    case Operation::reduce:
      return call.input.count;
    case Operation::broadcast:
    case Operation::all_gather:
      return call.output.count;
    case Operation::gather:
      return call.counts.empty() ? call.input.count * size_t(ranks) : sum_of(call.counts);
    case Operation::scatter:
      return call.counts.empty() ? call.output.count * size_t(ranks) : sum_of(call.counts);
    default:
      return 0;
  }
}

size_t chunk_bytes_of(const Call& call, const Choice& choice) {
  const bool theirs = call.chunk_bytes > 0 && call.operation == Operation::allreduce &&
                      choice.algorithm == Algorithm::direct;
  return theirs ? call.chunk_bytes : choice.chunk_bytes;
}

Type type_of_call(const Call& call) {
  return call.output.data ? call.output.type : call.input.type;
}

CallKind kind_of(Operation operation) {
  switch (operation) {
    case Operation::allreduce:
      return CallKind::allreduce;
    case Operation::reduce_scatter:
      return CallKind::reduce_scatter;
    case Operation::all_gather:
      return CallKind::all_gather;
    case Operation::broadcast:
      return CallKind::broadcast;
    case Operation::reduce:
      return CallKind::reduce;
    case Operation::gather:
      return CallKind::gather;
    case Operation::scatter:
      return CallKind::scatter;
    case Operation::all_to_all:
      return CallKind::all_to_all;
    case Operation::barrier:
      return CallKind::barrier;
  }
  return CallKind::other;
}

PreparedCall prepare(const Call& call, const Choice& choice, Tag tag, size_t elements, int rank,
                     int ranks) {
  const Type type = type_of_call(call);
  const bool averages = call.reducing.reduction == Reduction::average;
  const size_t element_bytes = bytes_of(type);
  plan::Plan plan;
  plan.operation = call.operation;
  plan.algorithm = choice.algorithm;
  plan.rank = rank;
  plan.ranks = ranks;
  plan.elements = elements;
  plan.root = call.root;
  plan.chunk_elements = chunk_bytes_of(call, choice) / element_bytes;
  return {call,
          choice,
          tag,
          element_bytes,
          plan,
          Buffers{bytes_at(call.input), 0, bytes_at(call.output), 0, type, call.reducing.reduction,
                  averages ? ranks : 0},
          choice.algorithm != Algorithm::hierarchical &&
              plan::reads_input(call.operation, choice.algorithm),
          plan::reduces(call.operation) && call.reducing.prescale != 1};
}

// Copies the input of an allreduce to its output, unless the plan reads the input itself.
void copy_input(PreparedCall& work) {
  if (!work.scales && work.reads_input) return;
  const ConstBufferView& input = work.call.input;
  std::byte* const output = work.buffers.output;
  copy_numbers(output, input.data, input.count * work.element_bytes);
  if (work.scales) scale(input.type, output, input.count, work.call.reducing.prescale);
  work.buffers.input = output;
}

}  // namespace

Executor::Executor(std::unique_ptr<Transport> transport, Table table, ActivityCounter& activity)
    : transport_(std::move(transport)),
      activity_(activity),
      rank_(transport_->rank()),
      ranks_(transport_->size()),
      table_(std::move(table)),
      hosts_(transport_->hosts()),
      sent_to_(size_t(transport_->size())),
      received_from_(size_t(transport_->size())) {}

void Executor::lay_out(const std::vector<size_t>& counts, size_t elements,
                       std::vector<Range>& blocks) const {
  blocks.clear();
  size_t begin = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    const size_t size =
        counts.empty() ? plan::piece(elements, rank, ranks_).size() : counts[size_t(rank)];
    blocks.push_back({begin, begin + size});
    begin += size;
  }
}

namespace {

Result<void> expect_elements(const char* what, size_t has, size_t needs) {
  if (has == needs) return ok();
  return invalid(std::string(what) + " holds " + std::to_string(has) + " elements where " +
                 std::to_string(needs) + " are needed");
}

Result<void> check_all_to_all(const Call& call, size_t rank, size_t ranks) {
  if (call.counts.empty() != call.received_counts.empty())
    return invalid("all_to_all needs both counts and received_counts, or neither");
  if (call.counts.empty()) {
    if (call.input.count % ranks != 0)
      return invalid("the input's " + std::to_string(call.input.count) +
                     " elements are not divisible by the " + std::to_string(ranks) +
                     " ranks: pass counts and received_counts");
    return expect_elements("the output", call.output.count, call.input.count);
  }
  TRY(expect_elements("the input", call.input.count, sum_of(call.counts)));
  TRY(expect_elements("the output", call.output.count, sum_of(call.received_counts)));
  if (call.counts[rank] != call.received_counts[rank])
    return invalid("this rank's counts for itself differ: what it sends and what it receives");
  return ok();
}

// Checks the numbers of elements. Requires: `counts` has a count for each rank, or is empty.
Result<void> check_elements(const Call& call, size_t rank, size_t ranks) {
  const bool is_root = int(rank) == call.root;
  const auto expect_input = [&](size_t needs) {
    return expect_elements("the input", call.input.count, needs);
  };
  const auto expect_output = [&](size_t needs) {
    return expect_elements("the output", call.output.count, needs);
  };
  switch (call.operation) {
    case Operation::allreduce:
      return expect_output(call.input.count);
    case Operation::reduce_scatter:
      if (call.counts.empty())
        return expect_output(plan::piece(call.input.count, int(rank), int(ranks)).size());
      TRY(expect_input(sum_of(call.counts)));
      return expect_output(call.counts[rank]);
    case Operation::all_gather:
      if (call.counts.empty()) return expect_output(call.input.count * ranks);
      TRY(expect_input(call.counts[rank]));
      return expect_output(sum_of(call.counts));
    case Operation::reduce:
      return is_root ? expect_output(call.input.count) : ok();
    case Operation::gather:
      if (!call.counts.empty()) TRY(expect_input(call.counts[rank]));
      return is_root ? expect_output(elements_of(call, int(ranks))) : ok();
    case Operation::scatter:
      if (!call.counts.empty()) TRY(expect_output(call.counts[rank]));
      return is_root ? expect_input(elements_of(call, int(ranks))) : ok();
    case Operation::all_to_all:
      return check_all_to_all(call, rank, ranks);
    default:
      return ok();
  }
}

}  // namespace

std::string name_of(const Call& call) {
  std::string name(to_string(call.operation));
  if (!call.reducing.name.empty()) name += " of " + call.reducing.name;
  return name;
}

Result<void> check(const Call& call, size_t rank, size_t ranks) {
  if (call.root < 0 || size_t(call.root) >= ranks)
    return invalid("invalid root: rank " + std::to_string(call.root) + " in a group of " +
                   counted(ranks, "rank"));
  if (!call.counts.empty() && call.counts.size() != ranks)
    return invalid("invalid counts: one is needed for each rank");
  if (!call.received_counts.empty() && call.received_counts.size() != ranks)
    return invalid("invalid received_counts: one is needed for each rank");
  if (plan::reduces(call.operation) && !exists(call.input.type, call.reducing.reduction))
    return invalid("unsupported reduction: " + std::string(to_string(call.reducing.reduction)) +
                   " of " + std::string(to_string(call.input.type)));
  const bool is_root = int(rank) == call.root;
  const bool rooted = call.operation == Operation::reduce || call.operation == Operation::gather ||
                      call.operation == Operation::scatter;
  if (call.operation != Operation::broadcast && call.operation != Operation::barrier &&
      (!rooted || is_root) && call.input.type != call.output.type) {
    return invalid("the input and the output have different types: " +
                   std::string(to_string(call.input.type)) + " and " +
                   std::string(to_string(call.output.type)));
  }
  return check_elements(call, rank, ranks);
}

Tag Executor::next_tag(const Call& call, const Choice& choice) {
  uint64_t label = mixed(uint64_t(call.operation) + 1, elements_of(call, ranks_));
  label =
      mixed(label, uint64_t(type_of_call(call)) << 32 | uint64_t(call.reducing.reduction) << 16 |
                       uint64_t(choice.algorithm) << 8 | uint64_t(call.root & 0xff));
  label = mixed(label, chunk_bytes_of(call, choice));
  if (call.operation != Operation::all_to_all) {
    for (const size_t count : call.counts) label = mixed(label, count);
  }
  return {operations_++, label};
}

Result<void> Executor::run(const plan::Plan& plan, std::span<const int> team, Tag tag,
                           const Buffers& buffers) {
  Run run(plan, team, tag, buffers, workspace_, *transport_);
  while (!TRY(run.advance())) {
    activity_.beat();
    TRY(transport_->wait());
  }
  return ok();
}

std::string Executor::plan_of(const Call& call) const {
  const size_t bytes = elements_of(call, ranks_) * bytes_of(type_of_call(call));
  return std::string(to_string(table_.choose(call.operation, bytes).algorithm));
}

// Returns a writable copy of the input, scaled.
std::byte* Executor::work_copy(const Call& call) {
  const size_t bytes = call.input.count * bytes_of(call.input.type);
  if (bytes > work_bytes_) {
    work_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    work_bytes_ = bytes;
  }
  copy_numbers(work_.get(), call.input.data, bytes);
  if (call.reducing.prescale != 1)
    scale(call.input.type, work_.get(), call.input.count, call.reducing.prescale);
  return work_.get();
}

Result<void> Executor::execute(const Call& call) {
  TRY(check(call, size_t(rank_), size_t(ranks_)));
  const size_t elements = elements_of(call, ranks_);
  const Choice& choice = table_.choose(call.operation, elements * bytes_of(type_of_call(call)));
  const Tag tag = next_tag(call, choice);
  if (ranks_ == 1) return run_single_rank(call);
  activity_.enter(kind_of(call.operation), elements * bytes_of(type_of_call(call)), tag.label);

  PreparedCall work = prepare(call, choice, tag, elements, rank_, ranks_);
  switch (call.operation) {
    case Operation::allreduce:
      copy_input(work);
      return choice.algorithm == Algorithm::hierarchical ? allreduce_by_hosts(work) : run(work);
    case Operation::reduce_scatter:
      return reduce_scatter(work);
    case Operation::all_gather:
      return all_gather(work);
    case Operation::broadcast:
      return run(work);
    case Operation::reduce:
      return reduce(work);
    case Operation::gather:
      return gather(work);
    case Operation::scatter:
      return scatter(work);
    case Operation::all_to_all:
      return all_to_all(work);
    case Operation::barrier: {
      std::byte here[2]{};
      work.buffers = Buffers{here, 0, here, 0, Type::u8, Reduction::sum, 0};
      return run(work);
    }
  }
  return ok();
}

Result<void> Executor::reduce_scatter(PreparedCall& work) {
  const Call& call = work.call;
  lay_out(call.counts, work.plan.elements, blocks_);
  work.plan.blocks = blocks_;
  const Range own = blocks_[size_t(rank_)];
  if (work.reads_input) {
    if (work.scales) work.buffers.input = work_copy(call);
    work.buffers.output_begin = own.begin;
    return run(work);
  }
  work.buffers.output = work_copy(call);
  TRY(run(work));
  copy_numbers(bytes_at(call.output), work.buffers.output + own.begin * work.element_bytes,
               own.size() * work.element_bytes);
  return ok();
}

Result<void> Executor::all_gather(PreparedCall& work) {
  const Call& call = work.call;
  lay_out(call.counts, work.plan.elements, blocks_);
  work.plan.blocks = blocks_;
  copy_numbers(bytes_at(call.output, blocks_[size_t(rank_)].begin), call.input.data,
               call.input.count * work.element_bytes);
  return run(work);
}

Result<void> Executor::reduce(PreparedCall& work) {
  const Call& call = work.call;
  if (work.reads_input) {
    if (work.scales) work.buffers.input = work_copy(call);
    return run(work);
  }
  work.buffers.output = work_copy(call);
  TRY(run(work));
  if (rank_ == call.root)
    copy_numbers(bytes_at(call.output), work.buffers.output, call.input.count * work.element_bytes);
  return ok();
}

Result<void> Executor::gather(PreparedCall& work) {
  const Call& call = work.call;
  lay_out(call.counts, work.plan.elements, blocks_);
  work.plan.blocks = blocks_;
  work.buffers.input_begin = blocks_[size_t(rank_)].begin;
  if (rank_ == call.root)
    copy_numbers(bytes_at(call.output, work.buffers.input_begin), call.input.data,
                 call.input.count * work.element_bytes);
  return run(work);
}

Result<void> Executor::scatter(PreparedCall& work) {
  const Call& call = work.call;
  lay_out(call.counts, work.plan.elements, blocks_);
  work.plan.blocks = blocks_;
  const Range own = blocks_[size_t(rank_)];
  work.buffers.output_begin = own.begin;
  if (rank_ == call.root)
    copy_numbers(bytes_at(call.output), bytes_at(call.input, own.begin),
                 own.size() * work.element_bytes);
  return run(work);
}

Result<void> Executor::all_to_all(PreparedCall& work) {
  const Call& call = work.call;
  lay_out(call.counts, call.input.count, blocks_);
  lay_out(call.received_counts, call.output.count, received_blocks_);
  work.plan.elements = call.input.count;
  work.plan.blocks = blocks_;
  work.plan.received_blocks = received_blocks_;
  const auto rank = size_t(rank_);
  copy_numbers(bytes_at(call.output, received_blocks_[rank].begin),
               bytes_at(call.input, blocks_[rank].begin),
               blocks_[rank].size() * work.element_bytes);
  return run(work);
}

Result<void> Executor::allreduce_by_hosts(const PreparedCall& work) {
  const size_t element_bytes = work.element_bytes;
  const auto stages = plan::hierarchical(
      rank_, hosts_, work.call.output.count, work.choice.chunk_bytes / element_bytes,
      work.choice.between, work.choice.between_chunk_bytes / element_bytes);
  for (const plan::Stage& stage : stages) {
    Buffers part = work.buffers;
    part.output += stage.begin * element_bytes;
    part.input = part.output;
    TRY(run(stage.plan, stage.team, work.tag, part));
  }
  return ok();
}

// Runs an operation of a group of one rank.
Result<void> Executor::run_single_rank(const Call& call) {
  if (call.operation == Operation::barrier || call.operation == Operation::broadcast) return ok();
  copy_numbers(bytes_at(call.output), call.input.data,
               call.output.count * bytes_of(call.output.type));
  if (plan::reduces(call.operation) && call.reducing.prescale != 1)
    scale(call.output.type, bytes_at(call.output), call.output.count, call.reducing.prescale);
  return ok();
}

Result<void> Executor::send(int peer, ConstBufferView values) {
  const size_t bytes = values.count * bytes_of(values.type);
  if (peer < 0 || peer >= ranks_ || peer == rank_)
    return invalid("invalid peer: rank " + std::to_string(peer));
  if (bytes == 0) return ok();
  const Tag tag{kBetweenTwo | sent_to_[size_t(peer)]++, mixed(bytes, 1)};
  transport_->send(std::span(&peer, 1), tag, {bytes_at(values), bytes});
  while (!transport_->all_sent()) {
    TRY(transport_->advance());
    if (!transport_->all_sent()) TRY(transport_->wait());
  }
  return ok();
}

Result<void> Executor::receive(int peer, BufferView values) {
  const size_t bytes = values.count * bytes_of(values.type);
  if (peer < 0 || peer >= ranks_ || peer == rank_)
    return invalid("invalid peer: rank " + std::to_string(peer));
  if (bytes == 0) return ok();
  const Tag tag{kBetweenTwo | received_from_[size_t(peer)]++, mixed(bytes, 1)};
  transport_->receive_into(peer, tag, {bytes_at(values), bytes});
  while (!transport_->all_received()) {
    TRY(transport_->advance());
    if (!transport_->all_received()) TRY(transport_->wait());
  }
  return ok();
}

// -- measuring

namespace {

constexpr int kSmallRounds = 20;
constexpr int kLargeRounds = 4;
constexpr size_t kLargeBytes = size_t{1} << 20;

// Measures a round trip; the first of the two ranks measures the time.
Result<double> round_trip(Transport& transport, int peer, bool first, std::span<std::byte> bytes,
                          uint64_t number) {
  const Tag tag{kMeasuring | number, bytes.size()};
  const auto began = std::chrono::steady_clock::now();
  if (first) transport.send(std::span(&peer, 1), tag, bytes);
  transport.receive_into(peer, tag, bytes);
  for (;;) {
    TRY(transport.advance());
    if (transport.all_received() && transport.all_sent()) break;
    TRY(transport.wait());
  }
  const auto ended = std::chrono::steady_clock::now();
  if (!first) transport.send(std::span(&peer, 1), tag, bytes);
  while (!transport.all_sent()) {
    TRY(transport.advance());
    if (!transport.all_sent()) TRY(transport.wait());
  }
  return std::chrono::duration<double>(ended - began).count();
}

Result<LinkCosts> measure_link(Transport& transport, int peer, bool first) {
  std::vector<std::byte> bytes(kLargeBytes);
  double small = 1;
  double large = 1;
  for (int i = 0; i < kSmallRounds; ++i) {
    small = std::min(
        small, TRY(round_trip(transport, peer, first, std::span(bytes).first(64), uint64_t(i))));
  }
  for (int i = 0; i < kLargeRounds; ++i) {
    large =
        std::min(large, TRY(round_trip(transport, peer, first, bytes, uint64_t(kSmallRounds + i))));
  }
  return LinkCosts{small / 2, std::max(large - small, 1e-9) / 2 / double(kLargeBytes)};
}

// Rounds costs, so that noise changes the rows of the table as little as possible between runs.
double to_power_of_two(double value) {
  return std::exp2(std::round(std::log2(std::max(value, 1e-15))));
}

}  // namespace

Result<Costs> measure(Transport& transport) {
  const auto hosts = transport.hosts();
  int local = -1;
  int remote = -1;
  for (int peer = transport.size() - 1; peer > 0; --peer) {
    if (hosts[size_t(peer)] == hosts[0]) {
      local = peer;
    } else {
      remote = peer;
    }
  }
  Costs costs;
  const int rank = transport.rank();
  if (local > 0 && (rank == 0 || rank == local))
    costs.local = TRY(measure_link(transport, rank == 0 ? local : 0, rank == 0));
  if (remote > 0 && (rank == 0 || rank == remote))
    costs.between = TRY(measure_link(transport, rank == 0 ? remote : 0, rank == 0));
  if (rank == 0) {
    std::vector<float> a(kLargeBytes / 8), b(kLargeBytes / 8);
    const std::byte* operands[] = {reinterpret_cast<const std::byte*>(a.data()),
                                   reinterpret_cast<const std::byte*>(b.data())};
    double best = 1;
    for (int i = 0; i < kLargeRounds; ++i) {
      const auto began = std::chrono::steady_clock::now();
      reduce_values(Type::f32, Reduction::sum, reinterpret_cast<std::byte*>(a.data()), operands,
                    a.size());
      best = std::min(
          best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }
    costs.reduce_seconds_per_byte = best / double(kLargeBytes / 2);
  }
  double numbers[] = {costs.local.latency_seconds, costs.local.seconds_per_byte,
                      costs.between.latency_seconds, costs.between.seconds_per_byte,
                      costs.reduce_seconds_per_byte};
  for (double& number : numbers) number = to_power_of_two(number);

  plan::Plan plan;
  plan.operation = Operation::broadcast;
  plan.algorithm = Algorithm::tree;
  plan.rank = rank;
  plan.ranks = transport.size();
  plan.elements = std::size(numbers);
  auto* bytes = reinterpret_cast<std::byte*>(numbers);
  Workspace workspace;
  TRY(Run(plan, {}, Tag{kMeasuring, 0}, Buffers{bytes, 0, bytes, 0, Type::f64, Reduction::sum, 0},
          workspace, transport)
          .finish());
  return Costs{{numbers[0], numbers[1]}, {numbers[2], numbers[3]}, numbers[4]};
}

}  // namespace trainyard::collectives
