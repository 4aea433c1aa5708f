#include "insights/contributor_report.hpp"

#include <algorithm>
#include <set>

namespace trainyard::insights {
namespace {

using Counted = std::map<std::vector<std::string>, Contributor>;

Instant period_of(Instant at, Duration period) {
  const int64_t length = period.count(), time = to_milliseconds(at);
  return from_milliseconds(time - ((time % length) + length) % length);
}

// The groups that the rule names, of those that exist.
Result<std::set<std::string>> groups_of(observe::Logs& logs, const ContributorRule& rule,
                                        const ContributorQuery& query) {
  std::set<std::string> out;
  for (const std::string& name : rule.groups()) {
    const bool prefix = name.ends_with('*');
    const std::string start = prefix ? name.substr(0, name.size() - 1) : name;
    for (const auto& group : TRY(logs.groups(query.region, start)))
      if (prefix ? query.may_read && query.may_read(group.name) : group.name == name)
        out.insert(group.name);
  }
  return out;
}

class Tally {
 public:
  Tally(const ContributorRule& rule, const ContributorQuery& query, const ContributorLimits& limits)
      : rule_(rule), query_(query), limits_(limits) {}

  Result<void> add(const observe::LogEvent& event) {
    bytes_ += event.message.size() + kContributorEventBytes;
    if (bytes_ > limits_.message_bytes_max)
      return exhausted("The report would read more than " +
                       std::to_string(limits_.message_bytes_max >> 20) +
                       " MiB of events. Choose a shorter time range.");
    auto contribution = rule_.of(event.message);
    if (!contribution) return ok();
    if (counted_.size() >= limits_.contributors_max && !counted_.contains(contribution->keys))
      return exhausted("The time range has more than " + std::to_string(limits_.contributors_max) +
                       " contributors.");
    const Instant at = period_of(event.at, query_.period);
    const double value = contribution->value;
    Contributor& contributor = counted_[contribution->keys];
    if (contributor.keys.empty()) contributor.keys = std::move(contribution->keys);
    contributor.total += value;
    const auto [cell, is_new] = contributor.periods.try_emplace(at);
    if (is_new && ++cells_ > limits_.cells_max)
      return exhausted("The report would have more than " + std::to_string(limits_.cells_max) +
                       " values of contributors in periods. Choose a longer period or a shorter "
                       "time range.");
    cell->second += value;
    ContributorPeriod& period = periods_[at];
    period.minimum = period.samples == 0 ? value : std::min(period.minimum, value);
    period.maximum = period.samples == 0 ? value : std::max(period.maximum, value);
    period.samples += 1;
    period.sum += value;
    return ok();
  }

  ContributorReport finish() {
    ContributorReport out{.contributors = counted_.size(), .periods = std::move(periods_)};
    for (auto& [keys, contributor] : counted_) {
      out.total += contributor.total;
      for (const auto& [at, value] : contributor.periods) {
        ContributorPeriod& period = out.periods[at];
        ++period.contributors;
        period.greatest = std::max(period.greatest, value);
      }
      out.top.push_back(std::move(contributor));
    }
    const auto rank = [&](const Contributor& each) {
      if (!query_.by_maximum) return each.total;
      double greatest = each.periods.begin()->second;
      for (const auto& [at, value] : each.periods) greatest = std::max(greatest, value);
      return greatest;
    };
    std::ranges::stable_sort(out.top, std::greater(), rank);
    if (out.top.size() > query_.contributors_max) out.top.resize(query_.contributors_max);
    return out;
  }

 private:
  const ContributorRule& rule_;
  const ContributorQuery& query_;
  const ContributorLimits& limits_;
  uint64_t bytes_ = 0;
  size_t cells_ = 0;
  Counted counted_;
  std::map<Instant, ContributorPeriod> periods_;
};

}  // namespace

Result<ContributorReport> report_contributors(observe::Logs& logs, const ContributorRule& rule,
                                              const ContributorQuery& query,
                                              const ContributorLimits& limits) {
  if (uint64_t((query.to - query.from) / query.period) > limits.periods_max)
    return exhausted("The time range has more than " + std::to_string(limits.periods_max) +
                     " periods. Choose a longer period.");
  Tally tally(rule, query, limits);
  for (const std::string& group : TRY(groups_of(logs, rule, query))) {
    const auto scan = TRY(logs.scan(query.region, group, {.from = query.from, .to = query.to}));
    for (bool ended = false; !ended;) {
      const auto page = TRY(scan->next());
      for (const auto& found : page.events) TRY(tally.add(found.event));
      ended = page.ended;
    }
  }
  return tally.finish();
}

}  // namespace trainyard::insights
