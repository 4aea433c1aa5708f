#include "parameter_server/keeper.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "collectives/reduce/reduce.hpp"

namespace trainyard::parameter_server {
namespace {

std::span<float> rows_in(std::vector<float>& values, const Slice& slice, uint64_t row, uint64_t count,
                         uint32_t width) {
  if (values.empty()) return {};
  return std::span(values).subspan(size_t((row - slice.begin) * width), size_t(count * width));
}

// ((a + b) + c) .., as a one-shot allreduce adds.
std::vector<float> folded(const std::vector<const std::vector<float>*>& operands) {
  std::vector<float> sum(operands[0]->size());
  std::vector<const std::byte*> bytes;
  for (const auto* each : operands) bytes.push_back(reinterpret_cast<const std::byte*>(each->data()));
  collectives::fold(collectives::Type::f32, collectives::Reduction::sum,
                    reinterpret_cast<std::byte*>(sum.data()), bytes, sum.size());
  return sum;
}

void add(std::vector<float>& sum, std::span<const float> values) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

}  // namespace

Keeper::Keeper(const Placement& placement, uint32_t server, uint32_t workers, Consistency consistency)
    : placement_(placement), server_(server), consistency_(consistency), clocks_(workers) {
  CHECK(server < placement.servers() && workers > 0, "a server of some workers");
  for (const Slice& slice : placement.slices()) {
    if (slice.server != server) continue;
    const Table& table = placement.tables()[slice.table];
    const auto numbers = size_t((slice.end - slice.begin) * table.width);
    Kept& kept = kept_[{slice.table, slice.begin}];
    kept.slice = slice;
    kept.values.resize(numbers);
    if (has_state(table.rule.kind)) kept.state.resize(numbers);
  }
}

uint64_t Keeper::slowest_round() const {
  uint64_t slowest = std::numeric_limits<uint64_t>::max();
  for (uint32_t worker = 0; worker < clocks_.size(); ++worker) {
    if (!left_.contains(worker)) slowest = std::min(slowest, clocks_[worker]);
  }
  return slowest;
}

std::vector<Outgoing> Keeper::heard(uint32_t worker, Request request) {
  CHECK(worker < clocks_.size(), "one of our workers");
  std::vector<Outgoing> out;
  const auto say = [&](Answer answer) { out.push_back({worker, std::move(answer)}); };
  if (left_.contains(worker) || waiting_.contains(worker)) {
    say(Refused{"a request after the end of its round"});
  } else if (auto* assign = std::get_if<Assign>(&request)) {
    Answer said = answer(worker, *assign);
    if (std::holds_alternative<Refused>(said)) say(std::move(said));
  } else if (auto* push = std::get_if<Push>(&request)) {
    Answer said = answer(worker, *push);
    if (std::holds_alternative<Refused>(said)) say(std::move(said));
  } else if (auto* pull = std::get_if<Pull>(&request)) {
    say(answer(worker, *pull));
  } else if (auto* tick = std::get_if<Tick>(&request)) {
    if (tick->round != clocks_[worker]) {
      say(Refused{"it ends round " + std::to_string(tick->round) + " and is in round " +
                  std::to_string(clocks_[worker])});
    } else {
      ++clocks_[worker];
      waiting_.insert(worker);
      let_proceed(out);
    }
  } else {
    // What it pushed in a round that it did not end is not applied.
    for (auto& [place, kept] : kept_) {
      kept.dense.erase(worker);
      for (auto& [row, by_worker] : kept.sparse) by_worker.erase(worker);
    }
    left_.insert(worker);
    let_proceed(out);
  }
  return out;
}

void Keeper::let_proceed(std::vector<Outgoing>& out) {
  const uint64_t slowest = slowest_round();
  if (consistency_.kind == Consistency::Kind::synchronous && !is_finished()) {
    // Nobody is further than one round, so at most one is complete.
    if (slowest > rounds_applied_) apply_round();
  }
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const uint64_t ahead = clocks_[*each] - std::min(slowest, clocks_[*each]);
    const bool may = consistency_.kind == Consistency::Kind::asynchronous || ahead <= consistency_.staleness;
    if (!may) {
      ++each;
      continue;
    }
    Outgoing& outgoing = out.emplace_back();
    outgoing.worker = *each;
    outgoing.answer.emplace<Proceed>(Proceed{clocks_[*each]});
    each = waiting_.erase(each);
  }
}

// -- requests

std::string Keeper::wrong(const Rows& rows, const std::string* values) const {
  if (rows.table >= placement_.tables().size()) return "there is no table " + std::to_string(rows.table);
  const Table& table = placement_.tables()[rows.table];
  const uint64_t count = rows.named.empty() ? rows.count : rows.named.size();
  if (values && (count > values->size() || values->size() != count * table.width * sizeof(float)))
    return "table '" + table.name + "': " + std::to_string(values->size()) + " bytes for " +
           std::to_string(count) + " rows";
  if (count > values_bytes_max / (table.width * sizeof(float)))
    return "table '" + table.name + "': " + std::to_string(count) + " rows fit no message";
  const auto ours = [&](uint64_t row) {
    return row < table.rows && placement_.slice_of(rows.table, row).server == server_;
  };
  const auto strange = [&](uint64_t row) {
    return "table '" + table.name + "': row " + std::to_string(row) + " is not kept here";
  };
  for (const uint64_t row : rows.named) {
    if (!ours(row)) return strange(row);
  }
  if (!rows.named.empty()) return "";
  if (rows.count == 0) return "table '" + table.name + "': no rows";
  if (!ours(rows.begin)) return strange(rows.begin);
  const Slice& slice = placement_.slice_of(rows.table, rows.begin);
  if (rows.count > slice.end - rows.begin) return strange(slice.end);
  return "";
}

Keeper::Kept& Keeper::kept_of(uint32_t table, uint64_t row) {
  return kept_.at({table, placement_.slice_of(table, row).begin});
}

template <class Each>
void Keeper::for_each_part(const Rows& rows, const Each& each) {
  if (rows.named.empty()) return each(kept_of(rows.table, rows.begin), rows.begin, rows.count, size_t{0});
  const uint32_t width = placement_.tables()[rows.table].width;
  for (size_t i = 0; i < rows.named.size(); ++i)
    each(kept_of(rows.table, rows.named[i]), rows.named[i], uint64_t{1}, i * width);
}

Answer Keeper::answer(uint32_t, Assign& request) {
  if (std::string why = wrong(request.rows, &request.values); !why.empty()) return Refused{std::move(why)};
  const uint32_t width = placement_.tables()[request.rows.table].width;
  for_each_part(request.rows, [&](Kept& kept, uint64_t row, uint64_t count, size_t at) {
    const auto values = rows_in(kept.values, kept.slice, row, count, width);
    read_values(std::string_view(request.values).substr(at * sizeof(float), values.size_bytes()), values);
  });
  return Values{};
}

Answer Keeper::answer(uint32_t worker, Push& request) {
  if (std::string why = wrong(request.rows, &request.values); !why.empty()) return Refused{std::move(why)};
  const uint32_t width = placement_.tables()[request.rows.table].width;
  std::vector<float> gradient(request.values.size() / sizeof(float));
  read_values(request.values, gradient);
  for_each_part(request.rows, [&](Kept& kept, uint64_t row, uint64_t count, size_t at) {
    const auto part = std::span<const float>(gradient).subspan(at, size_t(count * width));
    if (consistency_.kind != Consistency::Kind::synchronous) return apply(kept, row, part);
    if (part.size() == kept.values.size() && request.rows.named.empty()) {
      auto& dense = kept.dense[worker];
      if (dense.empty()) {
        dense.assign(part.begin(), part.end());
      } else {
        add(dense, part);
      }
      return;
    }
    for (uint64_t i = 0; i < count; ++i) {
      auto& sparse = kept.sparse[row + i][worker];
      const auto of_row = part.subspan(size_t(i * width), width);
      if (sparse.empty()) {
        sparse.assign(of_row.begin(), of_row.end());
      } else {
        add(sparse, of_row);
      }
    }
  });
  return Values{};
}

Answer Keeper::answer(uint32_t, Pull& request) {
  if (std::string why = wrong(request.rows, nullptr); !why.empty()) return Refused{std::move(why)};
  const uint32_t width = placement_.tables()[request.rows.table].width;
  Values found;
  for_each_part(request.rows, [&](Kept& kept, uint64_t row, uint64_t count, size_t) {
    found.values += bytes_of(rows_in(kept.values, kept.slice, row, count, width));
  });
  return found;
}

// -- applying

void Keeper::apply(Kept& kept, uint64_t row, std::span<const float> gradient) {
  const Table& table = table_of(kept);
  const uint64_t count = gradient.size() / table.width;
  update(table.rule, rows_in(kept.values, kept.slice, row, count, table.width),
         rows_in(kept.state, kept.slice, row, count, table.width), gradient);
}

void Keeper::apply_round() {
  for (auto& [place, kept] : kept_) {
    if (!kept.dense.empty()) {
      apply_dense(kept);
    } else if (!kept.sparse.empty()) {
      apply_sparse(kept);
    }
    kept.dense.clear();
    kept.sparse.clear();
  }
  ++rounds_applied_;
}

// Rows that some pushed by name are part of what they pushed of the whole.
void Keeper::apply_dense(Kept& kept) {
  const uint32_t width = table_of(kept).width;
  for (const auto& [row, by_worker] : kept.sparse) {
    for (const auto& [worker, values] : by_worker) {
      auto& dense = kept.dense[worker];
      dense.resize(kept.values.size());
      const auto into = rows_in(dense, kept.slice, row, 1, width);
      for (size_t i = 0; i < into.size(); ++i) into[i] += values[i];
    }
  }
  std::vector<const std::vector<float>*> operands;
  for (const auto& [worker, dense] : kept.dense) operands.push_back(&dense);
  apply(kept, kept.slice.begin, folded(operands));
}

void Keeper::apply_sparse(Kept& kept) {
  for (const auto& [row, by_worker] : kept.sparse) {
    std::vector<const std::vector<float>*> operands;
    for (const auto& [worker, values] : by_worker) operands.push_back(&values);
    if (!operands.empty()) apply(kept, row, folded(operands));
  }
}

}  // namespace trainyard::parameter_server
