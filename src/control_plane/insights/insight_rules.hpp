// InsightRules stores the rules of Contributor Insights by region and name, and makes their
// reports.
//
// Threads: callable from anywhere; changes are made one after another. A change is durable when the
// call returns. Errors: not_found; invalid (the definition); exhausted (too many rules, or a full
// disk); those of observe. Lifetime: the logs outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "insights/contributor_report.hpp"
#include "insights/contributor_rule.hpp"
#include "observe/log_definitions.hpp"
#include "observe/logs.hpp"

namespace trainyard::insights {

inline constexpr size_t kInsightRulesMax = 100;  // in a region, as on AWS
// The number of simultaneous reports. Each may use its limit of memory, and one processor.
inline constexpr size_t kInsightReportsMax = 2;

// The detail of exhausted errors: other reports are in progress.
enum class InsightFault { busy };

struct InsightRule {
  std::string definition;           // the text of the client
  std::optional<Instant> disabled;  // the time at which it was disabled; later events do not count
  std::map<std::string, std::string> tags;

  std::string text() const;
  static Result<InsightRule> from(std::string_view text);
};

class InsightRules {
 public:
  explicit InsightRules(observe::Logs& logs) : logs_(logs) {}

  // Creates or replaces a rule. A replaced rule keeps its tags, as on AWS, and the time at which it
  // was disabled.
  Result<void> put(const std::string& region, const std::string& name, InsightRule rule);
  Result<InsightRule> find(const std::string& region, const std::string& name);
  Result<std::vector<std::pair<std::string, InsightRule>>> list(const std::string& region);
  Result<void> remove(const std::string& region, const std::string& name);
  // Changes a rule. If `change` returns an error, nothing is changed, and the error is returned.
  using Change = std::function<Result<void>(InsightRule&)>;
  Result<void> change(const std::string& region, const std::string& name, const Change& change);

  // Makes a report. Errors: those of report_contributors(); exhausted with InsightFault::busy.
  Result<ContributorReport> report(const ContributorRule& rule, const ContributorQuery& query);

  // A ReportSlot counts as one of the simultaneous reports until it is destroyed.
  class ReportSlot {
   public:
    explicit ReportSlot(InsightRules* rules) : rules_(rules) {}
    ReportSlot(ReportSlot&& other) noexcept : rules_(std::exchange(other.rules_, nullptr)) {}
    ~ReportSlot();

   private:
    InsightRules* rules_;
  };
  // Returns a slot. Errors: exhausted with InsightFault::busy.
  Result<ReportSlot> take_report_slot();

 private:
  observe::Logs& logs_;
  Mutex changing_;  // held during a change, including its checks
  Mutex mutex_;
  size_t reports_ GUARDED_BY(mutex_) = 0;  // the number of reports in progress
};

}  // namespace trainyard::insights
