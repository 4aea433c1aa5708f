#include "campaign/followers.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"
#include "campaign/region.hpp"
#include "campaign/template.hpp"

namespace trainyard::campaign {
namespace {

// Beyond this number the catalogue is queried for each object, which is slow but harmless.
constexpr size_t kKnownObjectsMax = 1'000'000;

std::string reason_of(const Error& denial) { return "AccessDenied: " + denial.message; }

// Orders the campaigns so that the one that failed last comes last, and delays no other.
std::vector<Work> starting_after(const std::string& failed, std::vector<Work> all) {
  const auto first = std::find_if(all.begin(), all.end(),
                                  [&](const Work& work) { return work.definition.name > failed; });
  std::rotate(all.begin(), first, all.end());
  return all;
}

}  // namespace

// -- a region

Duration RegionFollower::iterate() {
  std::erase_if(clients_, [&](const auto& one) {
    return clock_.monotonic() - one.second.at >= settings_.client_lifetime;
  });
  bool answers = false;
  std::optional<Error> failure;
  for (const Work& work : starting_after(failed_, table_.work_of(region_))) {
    auto followed = follow(work);
    if (!followed && followed.error().kind == Kind::denied) {
      log(Level::warning, "campaign", "a campaign's principal was denied a request",
          {{"region", region_},
           {"campaign", work.definition.name},
           {"why", followed.error().message}});
      followed = end_denied(work, followed.error());
    }
    if (followed) {
      answers = true;
      continue;
    }
    log(Level::warning, "campaign", "cannot follow a region; retrying later",
        {{"region", region_},
         {"campaign", work.definition.name},
         {"why", followed.error().message}});
    failed_ = work.definition.name;
    failure = followed.error();
    // Each request to an unreachable region takes seconds.
    answers = answers && failure->kind != Kind::unavailable;
    if (failure->kind == Kind::unavailable) break;
  }
  if (answers) {
    table_.note_region(region_, {}, clock_.now());
  } else if (failure) {
    table_.note_region(region_, failure, clock_.now());
  }
  return failure ? settings_.lost_interval : settings_.iteration_interval;
}

Result<client::Client*> RegionFollower::client_of(const Principal& principal) {
  auto found = clients_.find(principal.record);
  if (found == clients_.end()) {
    auto client = TRY(settings_.open_client(region_, principal));
    found = clients_.emplace(principal.record, Opened{std::move(client), clock_.monotonic()}).first;
  }
  return found->second.client.get();
}

// Stops a campaign that lacks a right. If it is already being stopped, but may not describe or stop
// its jobs, ends its rows and leaves the jobs as they are.
Result<void> RegionFollower::end_denied(const Work& work, const Error& denial) {
  const std::string& name = work.definition.name;
  if (!work.stopping) return table_.stop(name, clock_.now(), reason_of(denial));
  for (const Row& row : work.rows) {
    const auto changed = table_.change(name, row.number, true, [&](Row& now) {
      const bool submitted = now.state == RowState::submitting || now.state == RowState::running;
      now.state = RowState::stopped;
      now.reason = reason_of(denial) + (submitted ? "; its job is left as it is" : "");
      now.ended = clock_.now();
    });
    if (!changed && changed.error().kind != Kind::cancelled) return changed;
  }
  return {};
}

Result<void> RegionFollower::follow(const Work& work) {
  client::Client& client = *TRY(client_of(work.started_by));
  const SeenJobs seen = TRY(find_jobs(client, work.definition, work.id, work.rows));
  auto moves = decide(work.definition, work.rows, seen, work.stopping, clock_.now());
  add_reports(work, client, seen, moves);
  for (Move& move : moves)
    if (move.changed && move.row.state == RowState::stopped && move.row.reason.empty())
      move.row.reason = work.stop_reason;
  std::map<int64_t, RowState> before;
  for (const Row& row : work.rows) before[row.number] = row.state;
  std::vector<std::pair<RowState, Row>> changed;
  for (const Move& move : moves)
    if (move.changed) changed.emplace_back(before.at(move.row.number), move.row);
  const auto taken = TRY(table_.put(work.definition.name, changed));
  for (const Move& move : moves)
    if (!move.changed || taken.count(move.row.number)) TRY(act(work, client, move));
  return {};
}

// Queries the results of jobs, at intervals while they run, and once when they have ended.
void RegionFollower::add_reports(const Work& work, client::Client& client, const SeenJobs& seen,
                                 std::vector<Move>& moves) {
  const auto now = clock_.monotonic();
  for (const Row& row : work.rows) {
    if (row.state != RowState::submitting && row.state != RowState::running) continue;
    const auto move = std::find_if(moves.begin(), moves.end(),
                                   [&](const Move& one) { return one.row.number == row.number; });
    Row next = move == moves.end() ? row : move->row;
    const bool retried = next.state == RowState::ready || next.attempt != row.attempt;
    const bool ended = next.over() || retried;
    if (!ended && next.state != RowState::running) continue;
    const std::string job = job_name(work.definition.name, row);
    if (const auto found = seen.find(job); found == seen.end() || found->second.foreign) continue;
    const auto queried = reports_queried_.find(job);
    if (!ended && queried != reports_queried_.end() &&
        now - queried->second < settings_.metrics_interval)
      continue;
    if (ended)
      reports_queried_.erase(job);
    else
      reports_queried_[job] = now;

    Row of_job = row;
    if (of_job.job_id.empty()) of_job.job_id = next.job_id;
    auto report = report_of(client, work.definition, of_job);
    if (!report) continue;
    // Lists of training jobs lack the failure text of a job's own output.
    if (work.definition.request_kind == RequestKind::training_job &&
        next.state == RowState::failed && !report->failure.empty())
      next.reason = std::move(report->failure);
    if (report->cost) next.cost = row.cost_before + *report->cost;
    if (retried)
      next.cost_before = next.cost;
    else if (!report->metrics.empty())
      next.metrics = std::move(report->metrics);
    if (to_json(next) == to_json(row)) continue;
    if (move == moves.end())
      moves.push_back({std::move(next), true, Move::Act::none});
    else
      move->row = std::move(next), move->changed = true;
  }
}

// Creates the bucket of a job's output, as `trainyard submit` does.
Result<void> RegionFollower::ensure_output(const Work& work, const Row& row) {
  const auto output = row.request.find("OutputDataConfig");
  if (output == row.request.end() || !output->is_object()) return {};
  const auto path = string_at(*output, "S3OutputPath");
  const auto location =
      path ? objects::parse_s3_uri(*path) : Result<objects::Location>(path.error());
  // The region reports what is wrong with it.
  if (!location || buckets_.count(location->bucket)) return {};
  const auto store = TRY(settings_.open_objects(region_, work.started_by));
  if (const auto there = store->head_bucket(location->bucket); !there) {
    // A principal that may write below a prefix need not have rights on the bucket. If it needs
    // them, the region rejects the job.
    if (there.error().kind == Kind::denied) return {};
    if (there.error().kind != Kind::not_found) return there.error();
    const auto made = store->create_bucket(location->bucket, region_);
    if (!made && made.error().kind != Kind::conflict) return made.error();
  }
  buckets_.insert(location->bucket);
  return {};
}

Result<void> RegionFollower::act(const Work& work, client::Client& client, const Move& move) {
  const std::string& name = work.definition.name;
  if (move.act == Move::Act::none) return {};
  if (move.act == Move::Act::stop) return stop(client, work.definition, move.row);
  const auto output = ensure_output(work, move.row);
  // The region rejects an invalid bucket, as the rest of an invalid request.
  if (!output && output.error().kind != Kind::invalid) return output;
  const auto id = output ? submit(client, work.definition, work.id, move.row)
                         : Result<std::string>(output.error());
  if (id) {
    return id->empty()
               ? ok()
               : table_.change(name, move.row.number, true, [&](Row& row) { row.job_id = *id; });
  }
  const Error& why = id.error();
  // The next query shows whether the request arrived.
  if (why.kind == Kind::unavailable || why.kind == Kind::exhausted) return why;
  const auto fail = [&](Row& row) {
    row.state = RowState::failed;
    row.reason = "refused: " + why.message;
    row.ended = clock_.now();
  };
  return why.kind == Kind::denied
             ? table_.change_and_stop(name, move.row.number, clock_.now(), reason_of(why), fail)
             : table_.change(name, move.row.number, true, fail);
}

// -- copies

Duration CopyFollower::iterate() {
  bool interrupted = false;
  for (const Work& work : table_.work_of(region_)) {
    if (work.stopping) continue;
    for (const Row& row : work.rows) {
      if (row.state != RowState::waiting && row.state != RowState::copying) continue;
      const auto copied = copy(work, row);
      if (table_.ended()) return settings_.lost_interval;
      if (copied || copied.error().kind == Kind::cancelled) continue;
      log(Level::warning, "campaign", "copying the data of a row was interrupted",
          {{"campaign", work.definition.name},
           {"row", row.label},
           {"why", copied.error().message}});
      const Kind kind = copied.error().kind;
      const bool hopeless =
          kind == Kind::not_found || kind == Kind::invalid || kind == Kind::denied;
      const auto fail = [&](Row& now) {
        now.reason = copied.error().message;
        if (!hopeless) return;
        now.state = RowState::failed;
        now.ended = clock_.now();
      };
      if (kind == Kind::denied) {
        (void)table_.change_and_stop(work.definition.name, row.number, clock_.now(),
                                     reason_of(copied.error()), fail);
        break;
      }
      (void)table_.change(work.definition.name, row.number, true, fail);
      if (hopeless) continue;
      interrupted = true;  // other rows of this campaign wait, rows of other campaigns do not
      break;
    }
  }
  return interrupted ? settings_.lost_interval : settings_.iteration_interval;
}

Result<void> CopyFollower::copy(const Work& work, const Row& row) {
  const std::string& name = work.definition.name;
  TRY(table_.change(name, row.number, true, [&](Row& now) {
    now.state = RowState::copying;
    now.status = "Copying";
  }));
  const auto source = TRY(settings_.open_objects(row.data_region, work.started_by));
  const auto target = TRY(settings_.open_objects(row.region, work.started_by));
  auto saved = clock_.monotonic();
  const int64_t moved_before = row.bytes_moved;
  const auto note = [&](const CopyProgress& progress, bool durably, RowState state) {
    return table_.change(name, row.number, durably, [&](Row& now) {
      now.state = state;
      now.bytes_total = progress.bytes_total;
      now.bytes_copied = progress.bytes_copied;
      now.bytes_moved = moved_before + progress.bytes_moved;
      now.objects_total = progress.objects_total;
      now.objects_copied = progress.objects_copied;
      now.reason.clear();
    });
  };
  const auto moved = [&](const CopyProgress& progress) {
    // Transferred bytes cannot be determined again, unlike existing objects: a kill loses the count
    // of one interval.
    const bool ends = table_.ended();
    const bool due = ends || clock_.monotonic() - saved >= settings_.save_interval;
    if (due) saved = clock_.monotonic();
    return note(progress, due, RowState::copying) && !ends;
  };
  const auto progress =
      TRY(copy_objects({*source, row.data, row.data_region}, {*target, row.copy_to, row.region},
                       settings_.copy, moved));
  TRY(note(progress, true, RowState::ready));
  table_.wake("region " + region_);
  return {};
}

// -- standing campaigns

Duration Watcher::iterate() {
  for (const Campaign& campaign : table_.list()) {
    if (campaign.stopped) continue;
    std::string last_error;
    for (const Watch& watch : campaign.definition.watches)
      if (const auto looked = add_objects(campaign, watch); !looked)
        last_error = looked.error().message;
    if (campaign.definition.standing && last_error.empty())
      if (const auto refreshed = refresh(campaign); !refreshed)
        last_error = refreshed.error().message;
    if (!last_error.empty() && last_error != table_.last_error(campaign.definition.name))
      log(Level::warning, "campaign", "a standing campaign cannot continue now",
          {{"campaign", campaign.definition.name}, {"why", last_error}});
    table_.set_last_error(campaign.definition.name, last_error);
  }
  return settings_.watch_interval;
}

Result<void> Watcher::stop_denied(const Campaign& campaign, const Error& denial) {
  TRY(table_.stop(campaign.definition.name, clock_.now(), reason_of(denial)));
  return denial;
}

Result<void> Watcher::require(const Campaign& campaign, std::string_view action) {
  const auto allowed = settings_.authorise(campaign.started_by, action, "*");
  return allowed || allowed.error().kind != Kind::denied ? allowed
                                                         : stop_denied(campaign, allowed.error());
}

Result<void> Watcher::add_objects(const Campaign& campaign, const Watch& watch) {
  const Definition& definition = campaign.definition;
  const std::string region = watch.region.empty() ? settings_.home : watch.region;
  const std::string context = "watching s3://" + watch.bucket + "/" + watch.prefix;
  const auto store = TRY(settings_.open_objects(region, campaign.started_by));
  objects::ListQuery query;
  query.prefix = watch.prefix;
  do {
    auto listed = store->list(watch.bucket, query).in(context);
    if (!listed && listed.error().kind == Kind::denied)
      return stop_denied(campaign, listed.error());
    const auto page = TRY(std::move(listed));
    for (const auto& object : page.objects) {
      if (!object.key.ends_with(watch.suffix)) continue;
      const std::string mark = definition.name + "/" + region + "/" + watch.table + "/" +
                               watch.bucket + "/" + object.key;
      if (known_.count(mark)) continue;
      const auto row = TRY(row_of_object(watch, region, object).in(context));
      TRY(require(campaign, "trainyard:ChangeCatalogue"));
      TRY(catalogue_.add(watch.table, row).in(context));
      if (known_.size() >= kKnownObjectsMax) known_.clear();
      known_.insert(mark);
    }
    query.start_after = page.next;
  } while (!query.start_after.empty() && !table_.ended());
  return {};
}

Result<void> Watcher::refresh(const Campaign& campaign) {
  const Definition& definition = campaign.definition;
  TRY(require(campaign, "trainyard:QueryCatalogue"));
  QueryResult query_result = TRY(run_query_(definition, campaign.started_by));
  const auto key =
      std::find(query_result.columns.begin(), query_result.columns.end(), definition.key);
  if (key == query_result.columns.end())
    return invalid("the query has no column `" + definition.key + "`");
  const auto column = size_t(key - query_result.columns.begin());
  std::set<std::string> known;
  for (const Row& row : campaign.rows) known.insert(row.label);
  std::erase_if(query_result.rows, [&](const std::vector<Json>& row) {
    return !known.insert(text_of(row[column])).second;
  });
  if (query_result.rows.empty()) return {};
  if (campaign.rows.size() + query_result.rows.size() > kRowsMax)
    return exhausted("a campaign has at most " + std::to_string(kRowsMax) +
                     " rows: start another one");
  auto plan = TRY(make_plan(definition, query_result, read_inputs_(definition, campaign.started_by),
                            int64_t(campaign.rows.size()) + 1));
  TRY(table_.add_rows(definition.name, std::move(plan.rows)));
  table_.wake("threads");
  return {};
}

Result<std::map<std::string, std::string>> row_of_object(const Watch& watch,
                                                         const std::string& region,
                                                         const objects::ObjectInfo& object) {
  const size_t slash = object.key.rfind('/');
  const std::string file = slash == std::string::npos ? object.key : object.key.substr(slash + 1);
  const Values values{{"uri", "s3://" + watch.bucket + "/" + object.key},
                      {"key", object.key},
                      {"bucket", watch.bucket},
                      {"region", region},
                      {"bytes", int64_t(object.bytes)},
                      {"stem", file.substr(0, file.rfind('.'))},
                      {"created", to_iso8601(object.modified, false)}};
  std::map<std::string, std::string> row;
  for (const auto& [column, text] : watch.row) row[column] = TRY(fill_text(text, values));
  return row;
}

}  // namespace trainyard::campaign
