#include "campaign/decide.hpp"

namespace trainyard::campaign {
namespace {

void take_over(Row& row, const SeenJob& seen) {
  row.status = seen.status;
  row.started = seen.started;
  if (seen.cost) row.cost = row.cost_before + *seen.cost;
  if (!seen.id.empty()) row.job_id = seen.id;
  if (seen.hosts > 0) row.hosts = seen.hosts;
}

// Updates the row by its job's state in the region.
void update_row(Row& row, const SeenJob& seen, int64_t retries, bool stopping, Instant now) {
  take_over(row, seen);
  if (seen.end == SeenJob::End::none) {
    row.state = RowState::running;
    return;
  }
  row.ended = seen.ended.value_or(now);
  row.reason = seen.reason;
  if (seen.end == SeenJob::End::completed) {
    row.state = RowState::completed;
  } else if (seen.end == SeenJob::End::stopped || stopping) {
    row.state = RowState::stopped;
  } else if (row.attempt > retries) {
    row.state = RowState::failed;
  } else {
    // `attempt` grows when the next job's name is stored.
    row.state = RowState::ready;
    row.cost_before = row.cost;
    row.ended.reset();
    row.job_id.clear();
    row.reason = "try " + std::to_string(row.attempt) + " failed: " + seen.reason;
  }
}

}  // namespace

std::vector<Move> decide(const Definition& definition, const std::vector<Row>& rows,
                         const SeenJobs& seen, bool stopping, Instant now) {
  std::vector<Move> moves;
  int64_t under_way = 0;
  for (const Row& row : rows)
    if (row.state == RowState::submitting || row.state == RowState::running) ++under_way;
  for (const Row& row : rows) {
    if (row.over()) continue;
    Move move;
    move.row = row;
    const bool submitted = row.state == RowState::submitting || row.state == RowState::running;
    const auto found = submitted ? seen.find(job_name(definition.name, row)) : seen.end();
    if (found != seen.end() && found->second.foreign) {
      // The row's job cannot be created. If the row was being stopped, it counts as stopped.
      --under_way;
      move.row.state = stopping ? RowState::stopped : RowState::failed;
      move.row.reason = "refused: the name is taken by a job that is not this campaign's, " +
                        std::string(found->first);
      move.row.ended = now;
    } else if (found != seen.end()) {
      update_row(move.row, found->second, definition.retries, stopping, now);
      if (move.row.state != RowState::running) --under_way;
      if (stopping && move.row.state == RowState::running) move.act = Move::Act::stop;
    } else if (submitted) {
      // The name is stored, but the region has no such job: it never received the request, or lost
      // its state. In both cases nothing runs, and the job may be submitted again.
      if (stopping) {
        move.row.state = RowState::stopped;
        move.row.ended = now;
      } else {
        move.row.state = RowState::submitting;
        move.act = Move::Act::submit;
      }
    }
    if (move.row.state == RowState::ready && !stopping && under_way < definition.at_once) {
      ++under_way;
      ++move.row.attempt;
      move.row.state = RowState::submitting;
      move.row.status.clear();
      move.row.metrics.clear();
      move.act = Move::Act::submit;
    } else if (stopping && move.row.state < RowState::submitting) {
      move.row.state = RowState::stopped;
      move.row.ended = now;
    }
    move.changed = to_json(move.row) != to_json(row);
    if (move.changed || move.act != Move::Act::none) moves.push_back(std::move(move));
  }
  return moves;
}

const Row* best_row(const ResultMetrics& result_metrics, const std::vector<Row>& rows) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    const auto mine = row.metrics.find(result_metrics.best);
    if (result_metrics.best.empty() || mine == row.metrics.end() ||
        row.state != RowState::completed)
      continue;
    if (!best || (result_metrics.highest ? mine->second > best->metrics.at(result_metrics.best)
                                         : mine->second < best->metrics.at(result_metrics.best)))
      best = &row;
  }
  return best;
}

std::map<std::string, RegionSum> sum_by_region(const ResultMetrics& result_metrics,
                                               const std::vector<Row>& rows) {
  std::map<std::string, RegionSum> sums;
  std::map<std::string, double> rate_of_all;
  for (const Row& row : rows) {
    RegionSum& sum = sums[row.region];
    ++sum.rows[row.state];
    const auto rate = row.metrics.find(result_metrics.rate);
    const double mine = result_metrics.rate.empty() || rate == row.metrics.end() ? 0 : rate->second;
    if (row.state == RowState::running) {
      sum.hosts += row.hosts;
      sum.gpus += row.gpus;
      sum.rate += mine;
    }
    rate_of_all[row.region] += mine;
    sum.cost += row.cost;
    sum.copy_cost += double(row.bytes_moved) / kGibibyte * row.copy_price_per_gib;
    sum.bytes_total += row.bytes_total;
    sum.bytes_copied += row.bytes_copied;
    if (row.attempt > 1) sum.tried_again += row.attempt - 1;
  }
  for (auto& [region, sum] : sums)
    if (sum.rows[RowState::running] == 0) sum.rate = rate_of_all[region];
  return sums;
}

}  // namespace trainyard::campaign
