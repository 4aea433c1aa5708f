// Makes the handler of scrapes, in front of another handler: it answers GET /metrics with a bearer
// token, and forwards all other requests.
//
// A scrape returns what the token's principal may see: series of the server, series of buckets, and
// those of each job that the principal may describe. An invalid token gets 401. A request without a
// token is forwarded, so it reveals nothing; it may be for a bucket of S3 with the name "metrics".
//
// Threads: as net::Handler. Lifetime: everything in ScrapeParts and the next handler outlive it.
// Errors: none.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "exposition/family.hpp"
#include "exposition/latest_values.hpp"
#include "net/http_server.hpp"
#include "operations/services.hpp"
#include "prometheus/bearer_tokens.hpp"

namespace trainyard::api::prometheus {

inline constexpr std::string_view kScrapePath = "/metrics";

// Adds the server's own series; those of buckets only if `buckets`. Called from many threads.
using AddServerFamilies = std::function<void(exposition::Families&, bool buckets)>;

struct ScrapeParts {
  const Settings& settings;
  const Services& services;
  exposition::LatestValues& values;
  AddServerFamilies add_server_families;
  ConfiguredTokens configured_tokens = nullptr;
  size_t job_series_max = 50'000;  // in one scrape
};

std::unique_ptr<net::Handler> make_scrape(ScrapeParts parts, net::Handler& next);

}  // namespace trainyard::api::prometheus
