// report_contributors() counts the contributors of a rule in the stored events of a time range. Its
// report has the top contributors, and statistics of each period.
//
// Threads: callable from anywhere; it blocks while it reads the logs.
// Errors: exhausted, with a message for the client, if the range has more events, contributors or
// periods than one report may count; those of observe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "insights/contributor_rule.hpp"
#include "observe/logs.hpp"

namespace trainyard::insights {

// Limits of one report: about a second of reading, and less than a hundred megabytes.
struct ContributorLimits {
  uint64_t message_bytes_max = 256 << 20;  // with kContributorEventBytes for each event
  size_t contributors_max = 100'000;
  size_t cells_max = 500'000;  // values of one contributor in one period
  size_t periods_max = 1'440;  // as AWS: a day of minutes
};

inline constexpr size_t kContributorEventBytes = 64;  // the cost of an event besides its message

struct ContributorQuery {
  std::string region;
  Instant from, to;  // `to` is exclusive
  Duration period = 60s;
  size_t contributors_max = 10;
  bool by_maximum = false;  // orders contributors by their maximum in a period, not by their sum
  // Returns whether the client may read a group that a prefix in the rule matches; nullptr: it may
  // read none. Groups with their full name in the rule were authorised when it was created.
  std::function<bool(const std::string& group)> may_read = nullptr;
};

struct Contributor {
  std::vector<std::string> keys;
  double total = 0;
  std::map<Instant, double> periods;  // by the period's start
};

// The sums of all contributors in one period.
struct ContributorPeriod {
  size_t contributors = 0;
  double greatest = 0;                       // the largest value of one contributor
  double samples = 0;                        // the number of counted events
  double sum = 0, minimum = 0, maximum = 0;  // of single events
};

struct ContributorReport {
  double total = 0;
  size_t contributors = 0;
  std::vector<Contributor> top;
  std::map<Instant, ContributorPeriod> periods;
};

Result<ContributorReport> report_contributors(observe::Logs& logs, const ContributorRule& rule,
                                              const ContributorQuery& query,
                                              const ContributorLimits& limits = {});

}  // namespace trainyard::insights
