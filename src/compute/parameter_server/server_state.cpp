#include "parameter_server/server_state.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/plural.hpp"
#include "collectives/reduce/reduce.hpp"

namespace trainyard::parameter_server {
namespace {

std::span<float> rows_in(std::vector<float>& values, const Slice& slice, uint64_t row,
                         uint64_t count, uint32_t width) {
  if (values.empty()) return {};
  return std::span(values).subspan(size_t((row - slice.begin) * width), size_t(count * width));
}

// Sums as ((a + b) + c) .., the order of a one-shot allreduce.
std::vector<float> reduced(const std::vector<const std::vector<float>*>& operands) {
  std::vector<float> sum(operands[0]->size());
  std::vector<const std::byte*> bytes;
  for (const auto* each : operands)
    bytes.push_back(reinterpret_cast<const std::byte*>(each->data()));
  collectives::reduce_values(collectives::Type::f32, collectives::Reduction::sum,
                             reinterpret_cast<std::byte*>(sum.data()), bytes, sum.size());
  return sum;
}

void add(std::vector<float>& sum, std::span<const float> values) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

}  // namespace

ServerState::ServerState(const Placement& placement, uint32_t server, uint32_t workers,
                         Consistency consistency)
    : placement_(placement), server_(server), consistency_(consistency), rounds_ended_(workers) {
  CHECK(server < placement.servers() && workers > 0,
        "server must be below placement.servers() and workers must be positive");
  for (const Slice& slice : placement.slices()) {
    if (slice.server != server) continue;
    const Table& table = placement.tables()[slice.table];
    const auto numbers = size_t((slice.end - slice.begin) * table.width);
    StoredSlice& stored = slices_[{slice.table, slice.begin}];
    stored.slice = slice;
    stored.values.resize(numbers);
    if (has_state(table.rule.kind)) stored.state.resize(numbers);
  }
}

uint64_t ServerState::slowest_round() const {
  uint64_t slowest = std::numeric_limits<uint64_t>::max();
  for (uint32_t worker = 0; worker < rounds_ended_.size(); ++worker) {
    if (!left_.contains(worker)) slowest = std::min(slowest, rounds_ended_[worker]);
  }
  return slowest;
}

std::vector<Outgoing> ServerState::handle(uint32_t worker, Request request) {
  CHECK(worker < rounds_ended_.size(), "worker must be below the number of workers");
  std::vector<Outgoing> out;
  const auto reply = [&](Answer answer) { out.push_back({worker, std::move(answer)}); };
  if (left_.contains(worker) || waiting_.contains(worker)) {
    reply(Refused{"a request arrived after the worker had ended its round or left"});
  } else if (auto* assign = std::get_if<Assign>(&request)) {
    Answer result = answer(worker, *assign);
    if (std::holds_alternative<Refused>(result)) reply(std::move(result));
  } else if (auto* push = std::get_if<Push>(&request)) {
    Answer result = answer(worker, *push);
    if (std::holds_alternative<Refused>(result)) reply(std::move(result));
  } else if (auto* pull = std::get_if<Pull>(&request)) {
    reply(answer(worker, *pull));
  } else if (auto* tick = std::get_if<Tick>(&request)) {
    if (tick->round != rounds_ended_[worker]) {
      reply(Refused{"tick for round " + std::to_string(tick->round) +
                    ", but the worker is in round " + std::to_string(rounds_ended_[worker])});
    } else {
      ++rounds_ended_[worker];
      waiting_.insert(worker);
      send_proceeds(out);
    }
  } else {
    // Leave: the pushes of a round that the worker did not end are not applied.
    for (auto& [slice, stored] : slices_) {
      stored.dense.erase(worker);
      for (auto& [row, by_worker] : stored.sparse) by_worker.erase(worker);
    }
    left_.insert(worker);
    send_proceeds(out);
  }
  return out;
}

void ServerState::send_proceeds(std::vector<Outgoing>& out) {
  const uint64_t slowest = slowest_round();
  if (consistency_.kind == Consistency::Kind::synchronous && !is_finished()) {
    // No worker is more than one round ahead, so at most one round is complete.
    if (slowest > rounds_applied_) apply_round();
  }
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const uint64_t ahead = rounds_ended_[*each] - std::min(slowest, rounds_ended_[*each]);
    const bool may_proceed =
        consistency_.kind == Consistency::Kind::asynchronous || ahead <= consistency_.staleness;
    if (!may_proceed) {
      ++each;
      continue;
    }
    Outgoing& outgoing = out.emplace_back();
    outgoing.worker = *each;
    outgoing.answer.emplace<Proceed>(Proceed{rounds_ended_[*each]});
    each = waiting_.erase(each);
  }
}

// -- requests

std::string ServerState::error_in(const Rows& rows, const std::string* values) const {
  if (rows.table >= placement_.tables().size())
    return "unknown table " + std::to_string(rows.table);
  const Table& table = placement_.tables()[rows.table];
  const uint64_t count = rows.named.empty() ? rows.count : rows.named.size();
  if (values && (count > values->size() || values->size() != count * table.width * sizeof(float)))
    return "table '" + table.name + "': " + std::to_string(values->size()) + " bytes for " +
           counted(count, "row") + " of " + counted(table.width, "float");
  if (count > kValuesBytesMax / (table.width * sizeof(float)))
    return "table '" + table.name + "': " + std::to_string(count) +
           " rows exceed the maximum message size";
  const auto is_stored_here = [&](uint64_t row) {
    return row < table.rows && placement_.slice_of(rows.table, row).server == server_;
  };
  const auto not_stored_here = [&](uint64_t row) {
    return "table '" + table.name + "': row " + std::to_string(row) + " is not stored on server " +
           std::to_string(server_);
  };
  for (const uint64_t row : rows.named) {
    if (!is_stored_here(row)) return not_stored_here(row);
  }
  if (!rows.named.empty()) return "";
  if (rows.count == 0) return "table '" + table.name + "': the request selects no rows";
  if (!is_stored_here(rows.begin)) return not_stored_here(rows.begin);
  const Slice& slice = placement_.slice_of(rows.table, rows.begin);
  if (rows.count > slice.end - rows.begin) return not_stored_here(slice.end);
  return "";
}

ServerState::StoredSlice& ServerState::slice_at(uint32_t table, uint64_t row) {
  return slices_.at({table, placement_.slice_of(table, row).begin});
}

template <class Each>
void ServerState::for_each_part(const Rows& rows, const Each& each) {
  if (rows.named.empty())
    return each(slice_at(rows.table, rows.begin), rows.begin, rows.count, size_t{0});
  const uint32_t width = placement_.tables()[rows.table].width;
  for (size_t i = 0; i < rows.named.size(); ++i)
    each(slice_at(rows.table, rows.named[i]), rows.named[i], uint64_t{1}, i * width);
}

Answer ServerState::answer(uint32_t, Assign& request) {
  if (std::string why = error_in(request.rows, &request.values); !why.empty())
    return Refused{std::move(why)};
  const uint32_t width = placement_.tables()[request.rows.table].width;
  for_each_part(request.rows, [&](StoredSlice& stored, uint64_t row, uint64_t count, size_t at) {
    const auto values = rows_in(stored.values, stored.slice, row, count, width);
    read_values(std::string_view(request.values).substr(at * sizeof(float), values.size_bytes()),
                values);
  });
  return Values{};
}

Answer ServerState::answer(uint32_t worker, Push& request) {
  if (std::string why = error_in(request.rows, &request.values); !why.empty())
    return Refused{std::move(why)};
  const uint32_t width = placement_.tables()[request.rows.table].width;
  std::vector<float> gradient(request.values.size() / sizeof(float));
  read_values(request.values, gradient);
  for_each_part(request.rows, [&](StoredSlice& stored, uint64_t row, uint64_t count, size_t at) {
    const auto part = std::span<const float>(gradient).subspan(at, size_t(count * width));
    if (consistency_.kind != Consistency::Kind::synchronous) return apply(stored, row, part);
    if (part.size() == stored.values.size() && request.rows.named.empty()) {
      auto& dense = stored.dense[worker];
      if (dense.empty()) {
        dense.assign(part.begin(), part.end());
      } else {
        add(dense, part);
      }
      return;
    }
    for (uint64_t i = 0; i < count; ++i) {
      auto& sparse = stored.sparse[row + i][worker];
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

Answer ServerState::answer(uint32_t, Pull& request) {
  if (std::string why = error_in(request.rows, nullptr); !why.empty())
    return Refused{std::move(why)};
  const uint32_t width = placement_.tables()[request.rows.table].width;
  Values found;
  for_each_part(request.rows, [&](StoredSlice& stored, uint64_t row, uint64_t count, size_t) {
    found.values += bytes_of(rows_in(stored.values, stored.slice, row, count, width));
  });
  return found;
}

// -- applying

void ServerState::apply(StoredSlice& stored, uint64_t row, std::span<const float> gradient) {
  const Table& table = table_of(stored);
  const uint64_t count = gradient.size() / table.width;
  update(table.rule, rows_in(stored.values, stored.slice, row, count, table.width),
         rows_in(stored.state, stored.slice, row, count, table.width), gradient);
}

void ServerState::apply_round() {
  for (auto& [slice, stored] : slices_) {
    if (!stored.dense.empty()) {
      apply_dense(stored);
    } else if (!stored.sparse.empty()) {
      apply_sparse(stored);
    }
    stored.dense.clear();
    stored.sparse.clear();
  }
  ++rounds_applied_;
}

// Merges the single rows that a worker pushed into its push of the whole slice.
void ServerState::apply_dense(StoredSlice& stored) {
  const uint32_t width = table_of(stored).width;
  for (const auto& [row, by_worker] : stored.sparse) {
    for (const auto& [worker, values] : by_worker) {
      auto& dense = stored.dense[worker];
      dense.resize(stored.values.size());
      const auto into = rows_in(dense, stored.slice, row, 1, width);
      for (size_t i = 0; i < into.size(); ++i) into[i] += values[i];
    }
  }
  std::vector<const std::vector<float>*> operands;
  for (const auto& [worker, dense] : stored.dense) operands.push_back(&dense);
  apply(stored, stored.slice.begin, reduced(operands));
}

void ServerState::apply_sparse(StoredSlice& stored) {
  for (const auto& [row, by_worker] : stored.sparse) {
    std::vector<const std::vector<float>*> operands;
    for (const auto& [worker, values] : by_worker) operands.push_back(&values);
    if (!operands.empty()) apply(stored, row, reduced(operands));
  }
}

}  // namespace trainyard::parameter_server
