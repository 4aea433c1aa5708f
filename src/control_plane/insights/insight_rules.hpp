// InsightRules stores the rules of Contributor Insights, by region and name, and reports on them.
//
// Threads: callable from anywhere; changes are made one after another. A change is durable when it
// returns. Errors: not_found; invalid (the definition), exhausted (too many, or a full disk); those
// of observe. Lifetime: the logs outlive it.
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

inline constexpr size_t kInsightRulesMax = 100;  // of a region, as on AWS
// Reports at once: each may hold its limit of memory, and reads as fast as one processor can.
inline constexpr size_t kInsightReportsMax = 2;

// The detail of exhausted: other reports are in progress.
enum class InsightFault { busy };

struct InsightRule {
  std::string definition;           // as the client wrote it
  std::optional<Instant> disabled;  // since then; later events do not count
  std::map<std::string, std::string> tags;

  std::string text() const;
  static Result<InsightRule> from(std::string_view text);
};

class InsightRules {
 public:
  explicit InsightRules(observe::Logs& logs) : logs_(logs) {}

  // The tags of an earlier rule stay, as on AWS, and so does the time since which it is disabled.
  Result<void> put(const std::string& region, const std::string& name, InsightRule rule);
  Result<InsightRule> find(const std::string& region, const std::string& name);
  Result<std::vector<std::pair<std::string, InsightRule>>> list(const std::string& region);
  Result<void> remove(const std::string& region, const std::string& name);
  // An error of `change` changes nothing, and is returned.
  using Change = std::function<Result<void>(InsightRule&)>;
  Result<void> change(const std::string& region, const std::string& name, const Change& change);

  // Errors: those of report_contributors(); exhausted with InsightFault::busy.
  Result<ContributorReport> report(const ContributorRule& rule, const ContributorQuery& query);

  // Holds one of the places for reports until it is destroyed.
  class ReportSlot {
   public:
    explicit ReportSlot(InsightRules* rules) : rules_(rules) {}
    ReportSlot(ReportSlot&& other) : rules_(std::exchange(other.rules_, nullptr)) {}
    ~ReportSlot();

   private:
    InsightRules* rules_;
  };
  // Errors: exhausted with InsightFault::busy.
  Result<ReportSlot> take_report_slot();

 private:
  observe::Logs& logs_;
  Mutex changing_;  // held from the checks of a change to its end
  Mutex mutex_;
  size_t reports_ GUARDED_BY(mutex_) = 0;  // in progress
};

}  // namespace trainyard::insights
