// Campaigns holds the campaigns of a server: planned from the catalogue, stored, and followed until
// their last row is over.
//
// A campaign is a client of its regions, by their API, whether a region is this server's own or
// another server; so it needs nothing of the control plane, and its state is a file of its own. It
// has the rights of the principal that started it, as they are at each use; when one is denied, the
// campaign is stopped with that as its reason. Its rows are followed by one thread per region, so
// that a region that does not answer delays no other: its rows stay as they are, and continue when
// it answers again. A copy has a thread for each target region.
//
// Threads: callable from anywhere; calls that query regions or the catalogue block for seconds at
// most.
// Errors: invalid (definition, SQL, template), conflict (name), not_found, unavailable, exhausted,
// denied.
// Lifetime: what Settings refer to outlives it. Destroying it ends its threads; the jobs continue.
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
  // A client of a region's API with the principal's rights, for one thread; each call tries once.
  // Requires: it is used for client_lifetime at most.
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
  Duration iteration_interval = 1s;  // between two queries of a region with active rows
  Duration metrics_interval = 3s;    // between two queries of a running job's metrics
  Duration lost_interval = 3s;       // between two tries at a region that does not answer
  // between two queries of what is watched; a PUT here is noticed at once
  Duration watch_interval = 15s;
  Duration save_interval = 2s;      // of a copy's progress
  size_t live_campaigns_max = 100;  // campaigns followed at the same time
  CopyLimits copy;
};

struct RegionState {
  bool answers = true;
  std::string why_not;
  std::optional<Instant> since;  // unset: it answers
};

struct Described {
  Campaign campaign;
  Comparison comparison;
  std::map<std::string, RegionState> regions;
  // of a standing campaign: why its query or its watched prefix cannot be read
  std::string last_error;
};

class Campaigns {
 public:
  virtual ~Campaigns() = default;
  virtual Result<Plan> plan(const Definition& definition, const Principal& by) = 0;
  // Plans, stores and follows a campaign, with the rights of `by`.
  virtual Result<Described> create(const Definition& definition, const Principal& by) = 0;
  virtual Result<Described> describe(const std::string& name) = 0;
  // The newest first.
  virtual std::vector<Described> list() = 0;
  // Stops its jobs; rows that have not started do not start.
  virtual Result<Described> stop(const std::string& name) = 0;
  // The answer covers campaigns that `by` may describe.
  virtual Result<QueryResult> query(const std::string& sql, const Principal& by) = 0;
  virtual Result<int64_t> change(const std::string& sql) = 0;
  // An object was created in this server's own store: watchers of its prefix look now. Returns
  // quickly.
  virtual void object_created(const std::string& bucket, const std::string& key) = 0;
};

// Loads the stored campaigns and continues them.
Result<std::unique_ptr<Campaigns>> make_campaigns(Settings settings,
                                                  std::unique_ptr<CampaignStore> store,
                                                  std::unique_ptr<Catalogue> catalogue,
                                                  Clock& clock, Random& random);

}  // namespace trainyard::campaign
