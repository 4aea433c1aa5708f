#include "cli/server_view.hpp"

#include <cmath>

#include "base/text.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

constexpr int kTitleColumns = 13;                              // "certificate  "
constexpr int kIndent = 2;                                     // of the lines of a section
constexpr auto kCertificateDue = std::chrono::hours(24 * 14);  // it is renewed 30 days before

Instant instant_at(const Json& answer, const char* name) {
  const double seconds = double_or(answer, name);
  return from_milliseconds(std::llround(seconds * 1000));
}

uint64_t bytes_at(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  return found != answer.end() && found->is_number_integer() ? found->get<uint64_t>() : 0;
}

std::string disk_text(const Json& answer, Paint& how) {
  const uint64_t free = bytes_at(answer, "DiskFreeBytes");
  const uint64_t reserve = bytes_at(answer, "DiskReserveBytes");
  how = free < reserve ? Paint::red : free < 2 * reserve ? Paint::yellow : Paint::none;
  std::string text =
      human_bytes(free) + " free of " + human_bytes(bytes_at(answer, "DiskSizeBytes"));
  if (reserve > 0)
    text += free < reserve ? ", below the reserve of " + human_bytes(reserve) +
                                 ": jobs and objects are rejected"
                           : ", " + human_bytes(reserve) + " of it reserved";
  return text;
}

std::string jobs_text(const Json& answer) {
  std::string text;
  for (const Json& each : answer.value("Jobs", Json::array()))
    text += (text.empty() ? "" : ", ") + std::to_string(each.value("Count", int64_t{0})) + " " +
            each.value("State", "");
  return text.empty() ? "none" : text;
}

std::string certificate_text(const Json& answer, Instant now, Paint& how) {
  const Instant ends = instant_at(answer, "CertificateEndTime");
  if (ends == Instant{}) return "";
  how = ends < now ? Paint::red : ends < now + kCertificateDue ? Paint::yellow : Paint::none;
  return (ends < now ? "ended " : "ends ") + time_text(ends);
}

std::string names_text(const Json& answer) {
  std::string text;
  for (const Json& name : answer.value("CertificateNames", Json::array()))
    if (name.is_string()) text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text;
}

std::string section(const OutputStyle& style, const std::string& title,
                    const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "\n" + paint(style, Paint::bold, title) + "\n";
  for (const std::string& line : lines) text += paragraph(style, line, Paint::none, "", kIndent);
  return text;
}

}  // namespace

std::string server_page(const OutputStyle& style, const Json& answer, Instant now) {
  std::string page;
  const auto add = [&](const char* title, const std::string& text, Paint how = Paint::none) {
    if (!text.empty()) page += paragraph(style, text, how, title, kTitleColumns);
  };
  add("endpoint", answer.value("Endpoint", ""));
  add("account", answer.value("Account", ""));
  const Instant started = instant_at(answer, "StartTime");
  add("started", time_text(started) + ", " + duration_text(now - started) + " ago");
  add("data", answer.value("DataDirectory", ""));
  add("config", answer.value("ConfigFile", ""));
  add("log", answer.value("LogFile", ""));
  Paint how = Paint::none;
  const std::string disk = disk_text(answer, how);
  add("disk", disk, how);
  add("ledger", human_bytes(bytes_at(answer, "LedgerBytes")));
  add("jobs", jobs_text(answer));
  add("agents", std::to_string(answer.value("Agents", int64_t{0})));
  const std::string certificate = certificate_text(answer, now, how);
  add("certificate", certificate, how);
  add("names", names_text(answer));
  std::vector<std::string> warnings, errors;
  for (const Json& warning : answer.value("Warnings", Json::array()))
    if (warning.is_string()) warnings.push_back(warning.get<std::string>());
  for (const Json& error : answer.value("Errors", Json::array()))
    errors.push_back(time_text(instant_at(error, "Time")) + "  " + error.value("Message", ""));
  return page + section(style, "Warnings", warnings) + section(style, "Last errors", errors);
}

}  // namespace trainyard::cli
