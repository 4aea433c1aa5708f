#include "insights/insight_rules.hpp"

#include "base/json.hpp"
#include "base/json_record.hpp"

namespace trainyard::insights {
namespace {

constexpr auto kKind = observe::DefinitionKind::insight_rule;

constexpr auto kRule = json_record<InsightRule>("insight rule", [](auto& side, auto& rule) {
  side("definition", rule.definition);
  side.if_set("disabled", rule.disabled);
  side.if_set("tags", rule.tags);
});

}  // namespace

std::string InsightRule::text() const { return dump(kRule.write(*this)); }

Result<InsightRule> InsightRule::from(std::string_view text) {
  return kRule.read(TRY(parse_json(text)));
}

Result<void> InsightRules::put(const std::string& region, const std::string& name,
                               InsightRule rule) {
  TRY(ContributorRule::parse(rule.definition));
  const MutexLock lock(changing_);
  const auto before = find(region, name);
  if (!before && before.error().kind != Kind::not_found) return before.error();
  if (before) rule.tags = before->tags;
  if (before && before->disabled && rule.disabled) rule.disabled = before->disabled;
  return logs_.definitions().put(region, kKind, {"", name, rule.text()}, kInsightRulesMax);
}

Result<InsightRule> InsightRules::find(const std::string& region, const std::string& name) {
  const auto found = TRY(logs_.definitions().find(region, kKind, "", name));
  if (!found) return not_found("unknown rule '" + name + "'");
  return InsightRule::from(found->body);
}

Result<std::vector<std::pair<std::string, InsightRule>>> InsightRules::list(
    const std::string& region) {
  std::vector<std::pair<std::string, InsightRule>> out;
  for (const auto& each : TRY(logs_.definitions().list(region, kKind, "")))
    out.emplace_back(each.name, TRY(InsightRule::from(each.body)));
  return out;
}

Result<void> InsightRules::remove(const std::string& region, const std::string& name) {
  const MutexLock lock(changing_);
  return logs_.definitions().remove(region, kKind, "", name);
}

Result<void> InsightRules::change(const std::string& region, const std::string& name,
                                  const Change& change) {
  const MutexLock lock(changing_);
  auto rule = TRY(find(region, name));
  TRY(change(rule));
  return logs_.definitions().put(region, kKind, {"", name, rule.text()}, kInsightRulesMax);
}

InsightRules::ReportSlot::~ReportSlot() {
  if (!rules_) return;
  const MutexLock lock(rules_->mutex_);
  --rules_->reports_;
}

Result<InsightRules::ReportSlot> InsightRules::take_report_slot() {
  const MutexLock lock(mutex_);
  if (reports_ == kInsightReportsMax)
    return exhausted(std::to_string(kInsightReportsMax) + " other reports are in progress",
                     InsightFault::busy);
  ++reports_;
  return ReportSlot(this);
}

Result<ContributorReport> InsightRules::report(const ContributorRule& rule,
                                               const ContributorQuery& query) {
  const auto slot = TRY(take_report_slot());
  return report_contributors(logs_, rule, query);
}

}  // namespace trainyard::insights
