#include "cli/activity_view.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace trainyard::cli {
namespace {

constexpr int64_t kQuietSeconds = 60;  // times of at least this length are painted

Cell age_cell(std::optional<int64_t> seconds) {
  if (!seconds) return {""};
  return {duration_text(std::chrono::seconds(*seconds)) + " ago",
          *seconds >= kQuietSeconds ? Paint::yellow : Paint::none};
}

struct RankOfHost {
  const HostView* host;
  const RankView* rank;
};

}  // namespace

std::string activity_table(const OutputStyle& style, const JobView& job) {
  std::vector<RankOfHost> ranks;
  std::vector<std::vector<Cell>> rows;
  for (const HostView& host : job.hosts) {
    if (host.output_seconds)
      rows.push_back({{host.name}, {"all"}, age_cell(host.output_seconds), {""}});
    for (const RankView& rank : host.ranks) ranks.push_back({&host, &rank});
  }
  if (rows.empty() && ranks.empty()) return "";
  const size_t left_out = ranks.size() - std::min(ranks.size(), kActivityRanksMax);
  if (left_out > 0) {
    std::ranges::stable_sort(ranks, std::greater(), [](const RankOfHost& each) {
      return each.rank->collective_seconds.value_or(-1);
    });
    ranks.resize(kActivityRanksMax);
  }
  for (const auto& [host, rank] : ranks)
    rows.push_back({{host->name},
                    {std::to_string(rank->rank)},
                    age_cell(rank->output_seconds),
                    age_cell(rank->collective_seconds)});
  std::string out = table(style, {{"host"}, {"rank"}, {"last output"}, {"last collective"}}, rows);
  if (left_out > 0)
    out += "and " + std::to_string(left_out) + " other rank" + (left_out > 1 ? "s" : "") + "\n";
  return out;
}

Json activity_json(const JobView& job) {
  Json all = Json::array();
  for (const HostView& host : job.hosts) {
    if (host.output_seconds)
      all.push_back({{"Host", host.name}, {"SecondsSinceOutput", *host.output_seconds}});
    for (const RankView& rank : host.ranks) {
      Json& one = all.emplace_back(Json{{"Host", host.name}, {"Rank", rank.rank}});
      if (rank.output_seconds) one["SecondsSinceOutput"] = *rank.output_seconds;
      if (rank.collective_seconds) one["SecondsSinceCollective"] = *rank.collective_seconds;
    }
    for (const FaultView& fault : host.faults)
      all.push_back({{"Host", host.name},
                     {"Fault", fault.fault},
                     {"Rank", fault.rank},
                     {"Message", fault.message}});
  }
  return all;
}

}  // namespace trainyard::cli
