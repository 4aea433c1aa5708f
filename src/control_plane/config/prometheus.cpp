#include "config/prometheus.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "config/password_file.hpp"
#include "config/table.hpp"

namespace trainyard::config {
namespace {

constexpr size_t kTokenBytesMin = 16;
constexpr size_t kTokenBytesMax = 1024;
constexpr size_t kTokensMax = 100;
constexpr int64_t kSeriesLimitMax = 1'000'000;  // some 200 MB
constexpr size_t kTargetsMax = 4;               // each has a thread
constexpr size_t kTargetNameMax = 64;

bool is_visible(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

Result<void> read_token(Table table, const std::string& directory, PrometheusSettings& settings) {
  std::string file;
  MetricsToken token;
  TRY(table.read("token_file", file));
  TRY(table.read("user", token.user));
  TRY(table.nothing_else());
  if (file.empty()) return table.refused("token_file", "the name of a file with the token");
  token.token = TRY(read_password_file(table, directory, file, "token_file"));
  if (token.token.size() < kTokenBytesMin || token.token.size() > kTokenBytesMax ||
      !is_visible(token.token))
    return table.refused_element("token_file", file,
                                 "a file with a token of " + std::to_string(kTokenBytesMin) +
                                     " to " + std::to_string(kTokenBytesMax) +
                                     " visible characters");
  if (settings.tokens.size() >= kTokensMax)
    return invalid(table.name("token_file") + ": at most " + std::to_string(kTokensMax) +
                   " tokens are allowed: remove some");
  settings.tokens.push_back(std::move(token));
  return {};
}

// Reads the headers of a file with a line "NAME: VALUE" for each.
Result<void> read_headers(const Table& table, const std::string& text, RemoteWriteTarget& target) {
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const size_t colon = line.find(':');
    const std::string name(trim(line.substr(0, colon)));
    if (colon == line.npos || name.empty() || !is_visible(name))
      return invalid(table.name("headers_file") +
                     ": each line of the file must be a header, like 'dd-api-key: KEY'");
    target.headers.emplace_back(name, trim(line.substr(colon + 1)));
  }
  return {};
}

Result<void> read_target(Table table, bool otlp, const std::string& directory,
                         PrometheusSettings& settings) {
  RemoteWriteTarget target{.otlp = otlp};
  std::string authorization_file, headers_file;
  TRY(table.read("name", target.name));
  TRY(table.read("url", target.url));
  TRY(table.read("authorization_file", authorization_file));
  TRY(table.read("headers_file", headers_file));
  TRY(table.read("ca_bundle", target.ca_bundle));
  TRY(table.nothing_else());
  const bool plain = !target.name.empty() && target.name.size() <= kTargetNameMax &&
                     std::ranges::all_of(target.name, [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                     });
  if (!plain)
    return table.refused(
        "name", "1 to " + std::to_string(kTargetNameMax) + " lower-case letters, digits and '-'");
  if (std::ranges::count(settings.remote_write, target.name, &RemoteWriteTarget::name) > 0)
    return invalid(table.name("name") + ": two receivers have the name '" + target.name +
                   "': give each a name of its own");
  if (!target.url.starts_with("http://") && !target.url.starts_with("https://"))
    return table.refused("url", "a URL, http:// or https://");
  if (!authorization_file.empty())
    target.headers.emplace_back(
        "Authorization",
        TRY(read_password_file(table, directory, authorization_file, "authorization_file")));
  if (!headers_file.empty())
    TRY(read_headers(table, TRY(read_password_file(table, directory, headers_file, "headers_file")),
                     target));
  if (!target.ca_bundle.empty() && !target.ca_bundle.starts_with('/'))
    target.ca_bundle.insert(0, directory);
  if (settings.remote_write.size() >= kTargetsMax)
    return invalid(table.name("name") + ": at most " + std::to_string(kTargetsMax) +
                   " receivers are allowed: remove some");
  settings.remote_write.push_back(std::move(target));
  return {};
}

}  // namespace

Result<void> read_prometheus(Table& root, const std::string& directory,
                             PrometheusSettings& settings) {
  TRY(root.each("prometheus", [&](Table table) -> Result<void> {
    for (const auto& [key, limit] : {std::pair{"series_of_job_max", &settings.series_of_job_max},
                                     std::pair{"series_max", &settings.series_max},
                                     std::pair{"scrape_series_max", &settings.scrape_series_max}}) {
      TRY(table.read(key, *limit, {1, kSeriesLimitMax}));
    }
    TRY(table.each("tokens",
                   [&](Table token) { return read_token(std::move(token), directory, settings); }));
    TRY(table.each("remote_write", [&](Table target) {
      return read_target(std::move(target), false, directory, settings);
    }));
    return table.nothing_else();
  }));
  return root.each("otlp", [&](Table target) {
    return read_target(std::move(target), true, directory, settings);
  });
}

}  // namespace trainyard::config
