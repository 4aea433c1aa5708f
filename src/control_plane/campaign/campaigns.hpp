// Campaigns runs the campaigns of a server: it plans them from the catalogue, stores them, and
// follows their jobs until the last row has ended.
//
// A campaign uses the API of its regions as a client, even of this server's own region. So it does
// not depend on the control plane, and has its own file. It has the current rights of the principal
// that started it; a denied request stops the campaign and becomes its stop reason. One thread per
// region follows rows, so that an unreachable region delays no other: its rows continue when it
// answers again. Another thread per region copies data to it.
//
// Threads: callable from anywhere; calls that query regions or the catalogue block, for some
// seconds
//          at most.
// Errors: invalid (definition, SQL, template), conflict (name), not_found, unavailable, exhausted,
// denied.
// Lifetime: the functions of Settings stay valid. The destructor ends the threads; jobs continue.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "campaign/catalogue.hpp"
#include "campaign/copy.hpp"
#include "campaign/decide.hpp"
#include "campaign/plan.hpp"
#include "campaign/principal.hpp"
#include "campaign/store.hpp"
#include "client/client.hpp"
#include "objects/objects.hpp"

namespace trainyard::campaign {

struct Settings {
  std::string home;                  // the server's own region
  std::vector<std::string> regions;  // known regions, including its own
  // Opens a client of a region's API with the principal's rights, for one thread. Its calls do not
  // retry. Requires: the client is used for at most client_lifetime.
  std::function<Result<std::unique_ptr<client::Client>>(const std::string& region,
                                                        const Principal&)>
      open_client;
  std::function<Result<std::unique_ptr<objects::Objects>>(const std::string& region,
                                                          const Principal&)>
      open_objects;
  // Checks that the principal has this right now. `resource` is "*" or "campaign/NAME". Errors:
  // denied, with AWS's text.
  std::function<Result<void>(const Principal&, std::string_view action,
                             const std::string& resource)>
      authorise;
  Duration client_lifetime = 10min;
  Duration iteration_interval = 1s;  // between queries of a region with active rows
  Duration metrics_interval = 3s;    // between queries of a running job's metrics
  Duration lost_interval = 3s;       // between tries to reach a region that does not answer
  // Between listings of watched prefixes. Objects of this server are noticed at once.
  Duration watch_interval = 15s;
  Duration save_interval = 2s;      // between writes of a copy's progress
  size_t live_campaigns_max = 100;  // campaigns followed at the same time
  CopyLimits copy;
};

struct RegionState {
  bool answers = true;
  std::string why_not;
  std::optional<Instant> since;  // since when it does not answer; nullopt: it answers
};

struct Described {
  Campaign campaign;
  Comparison comparison;
  std::map<std::string, RegionState> regions;
  // Why the query or the watched prefix of a standing campaign cannot be read; "": it can.
  std::string last_error;
};

class Campaigns {
 public:
  virtual ~Campaigns() = default;
  virtual Result<Plan> plan(const Definition& definition, const Principal& by) = 0;
  // Plans, stores and follows a campaign, with the rights of `by`.
  virtual Result<Described> create(const Definition& definition, const Principal& by) = 0;
  virtual Result<Described> describe(const std::string& name) = 0;
  // Returns all campaigns, the newest first.
  virtual std::vector<Described> list() = 0;
  // Stops the campaign's jobs; further rows do not start.
  virtual Result<Described> stop(const std::string& name) = 0;
  // Runs a query. The table campaign_rows has only campaigns that `by` may describe.
  virtual Result<QueryResult> query(const std::string& sql, const Principal& by) = 0;
  virtual Result<int64_t> change(const std::string& sql) = 0;
  // Notifies campaigns that an object was created on this server, so that those that watch its
  // prefix list it now. Does not block.
  virtual void object_created(const std::string& bucket, const std::string& key) = 0;
};

// Loads the stored campaigns and continues them.
Result<std::unique_ptr<Campaigns>> make_campaigns(Settings settings,
                                                  std::unique_ptr<CampaignStore> store,
                                                  std::unique_ptr<Catalogue> catalogue,
                                                  Clock& clock, Random& random);

}  // namespace trainyard::campaign
