#include "gateway/rank_watches.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/activity_table.hpp"

namespace trainyard::gateway {
namespace {

constexpr uint64_t kTimeMaxUs = uint64_t{365} * 24 * 3600 * 1'000'000;  // a year, for each counter

void limit(Duration& age) { age = std::clamp<Duration>(age, 0ms, kActivityAgeMax); }
void limit(std::optional<Duration>& age) {
  if (age) limit(*age);
}
void limit(uint64_t& microseconds) { microseconds = std::min(microseconds, kTimeMaxUs); }

}  // namespace

Result<void> check_activity(wire::Activity& activity) {
  if (activity.ranks.size() > kActivitySlots || activity.calls.size() > kActivitySlots)
    return corrupt("invalid Activity message: " + std::to_string(activity.ranks.size()) +
                   " ranks and " + std::to_string(activity.calls.size()) + " calls, and at most " +
                   std::to_string(kActivitySlots) + " of each are allowed");
  limit(activity.output);
  limit(activity.idle);
  for (wire::RankActivity& rank : activity.ranks) limit(rank.output), limit(rank.collective);
  for (wire::RankCalls& calls : activity.calls) {
    limit(calls.unchanged), limit(calls.since_beat);
    limit(calls.inside_us), limit(calls.outside_us), limit(calls.loading_us);
    if (calls.links.size() > kCallLinks) calls.links.resize(kCallLinks);
    for (wire::LinkLoad& link : calls.links) limit(link.busy_us);
  }
  std::erase_if(activity.calls, [](const wire::RankCalls& calls) {
    return calls.group_ranks < 2 || calls.group_ranks > kActivityRankMax ||
           calls.group_rank >= calls.group_ranks || calls.rank >= kActivityRankMax;
  });
  return {};
}

void add_elapsed(wire::Activity& activity, Duration since) {
  if (activity.output) *activity.output += since;
  for (wire::RankActivity& rank : activity.ranks) {
    if (rank.output) *rank.output += since;
    if (rank.collective) *rank.collective += since;
  }
}

std::string line_of(const diagnosis::FaultNews& news) {
  if (news.begins) return news.fault.text;
  return "ended after " + std::to_string(news.lasted.count() / 1000) + " s: " + news.fault.text;
}

void add_ranks(const AgentSession& session, std::chrono::nanoseconds now,
               std::vector<diagnosis::RankState>& ranks) {
  if (!session.activity) return;
  const auto since = std::chrono::duration_cast<Duration>(now - session.activity_at);
  for (const wire::RankCalls& calls : session.activity->calls) {
    ranks.push_back({session.host, calls, session.activity->idle});
    // `since_beat` and the host's `idle` stay as reported: the server cannot see whether they still
    // grow.
    ranks.back().calls.unchanged += since;
  }
}

bool RankWatches::is_due(const domain::AttemptId& attempt, std::chrono::nanoseconds now) const {
  const auto found = watched_.find(attempt.job);
  if (found == watched_.end() || found->second.attempt < attempt.number) return true;
  // An agent of an earlier attempt may still be connected.
  return found->second.attempt == attempt.number && now >= found->second.next_update;
}

std::vector<diagnosis::FaultNews> RankWatches::update(
    const domain::AttemptId& attempt, const std::vector<diagnosis::RankState>& ranks,
    std::chrono::nanoseconds now) {
  if (ranks.empty() && !watched_.contains(attempt.job)) return {};
  Watched& watched = watched_[attempt.job];
  std::vector<diagnosis::FaultNews> news;
  if (watched.attempt != attempt.number) {
    news = end(attempt.job, now);
    watched = {.attempt = attempt.number};
  }
  watched.next_update = now + Duration(ranks.size() / kRanksInMillisecond);
  auto found = watched.watch.update(ranks, now);
  limit_news(watched, found);
  std::ranges::move(found, std::back_inserter(news));
  return news;
}

std::vector<diagnosis::FaultNews> RankWatches::end(domain::JobNumber job,
                                                   std::chrono::nanoseconds now) {
  const auto found = watched_.find(job);
  if (found == watched_.end()) return {};
  auto news = found->second.watch.end(now);
  limit_news(found->second, news);
  return news;
}

void RankWatches::limit_news(Watched& watched, std::vector<diagnosis::FaultNews>& news) {
  std::erase_if(news, [&](const diagnosis::FaultNews& each) {
    if (each.begins) {
      if (watched.announced_count == kAnnouncedFaultsMax) return true;
      ++watched.announced_count;
      watched.announced.push_back(each.fault);
      return false;
    }
    const auto same = [&](const diagnosis::RankFault& fault) { return fault.same_as(each.fault); };
    return std::erase_if(watched.announced, same) == 0;
  });
}

std::vector<diagnosis::RankFault> RankWatches::faults(domain::JobNumber job) const {
  const auto found = watched_.find(job);
  return found == watched_.end() ? std::vector<diagnosis::RankFault>{}
                                 : found->second.watch.faults();
}

}  // namespace trainyard::gateway
