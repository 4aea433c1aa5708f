#include "trainyard/campaigns.hpp"

#include "objects/s3_client.hpp"

namespace trainyard::apps {
namespace {

constexpr Duration kConnectLimit = 3s;
constexpr Duration kAnswerLimit = 10s;  // a region whose link is cut is missed after so long
// The next turn tries again, so neither API nor copy does so by itself for long.
constexpr int kAttemptsOfApi = 1;
constexpr int kAttemptsOfObjects = 3;

// The server's own store, lent to each who asks.
class LentObjects final : public objects::Objects {
 public:
  explicit LentObjects(objects::Objects& store) : store_(store) {}
  Result<void> create_bucket(const std::string& bucket, const std::string& region) override {
    return store_.create_bucket(bucket, region);
  }
  Result<void> delete_bucket(const std::string& bucket) override { return store_.delete_bucket(bucket); }
  Result<objects::BucketInfo> head_bucket(const std::string& bucket) override {
    return store_.head_bucket(bucket);
  }
  Result<std::vector<objects::BucketInfo>> list_buckets() override { return store_.list_buckets(); }
  Result<std::unique_ptr<objects::Reader>> get(const std::string& bucket, const std::string& key,
                                               std::optional<objects::Range> range) override {
    return store_.get(bucket, key, range);
  }
  Result<objects::ObjectInfo> head(const std::string& bucket, const std::string& key) override {
    return store_.head(bucket, key);
  }
  Result<std::unique_ptr<objects::Writer>> put(const std::string& bucket, const std::string& key,
                                               const objects::PutOptions& options) override {
    return store_.put(bucket, key, options);
  }
  Result<void> remove(const std::string& bucket, const std::string& key) override {
    return store_.remove(bucket, key);
  }
  Result<objects::ListPage> list(const std::string& bucket, const objects::ListQuery& query) override {
    return store_.list(bucket, query);
  }
  Result<std::string> start_upload(const std::string& bucket, const std::string& key,
                                   const objects::PutOptions& options) override {
    return store_.start_upload(bucket, key, options);
  }
  Result<std::unique_ptr<objects::Writer>> put_part(const std::string& bucket, const std::string& key,
                                                    const std::string& upload_id, uint32_t part,
                                                    const objects::PutOptions& options) override {
    return store_.put_part(bucket, key, upload_id, part, options);
  }
  Result<objects::ObjectInfo> complete_upload(const std::string& bucket, const std::string& key,
                                              const std::string& upload_id,
                                              const std::vector<objects::PartInfo>& parts,
                                              const objects::CompleteOptions& options) override {
    return store_.complete_upload(bucket, key, upload_id, parts, options);
  }
  Result<void> abort_upload(const std::string& bucket, const std::string& key,
                            const std::string& upload_id) override {
    return store_.abort_upload(bucket, key, upload_id);
  }
  Result<std::vector<objects::PartInfo>> list_parts(const std::string& bucket, const std::string& key,
                                                    const std::string& upload_id) override {
    return store_.list_parts(bucket, key, upload_id);
  }
  Result<std::vector<objects::UploadInfo>> list_uploads(const std::string& bucket,
                                                        const std::string& prefix) override {
    return store_.list_uploads(bucket, prefix);
  }

 private:
  objects::Objects& store_;
};

}  // namespace

std::vector<campaign::Room> rooms_of(const std::vector<launch::Machine>& machines) {
  std::vector<campaign::Room> rooms;
  for (const auto& machine : machines)
    rooms.push_back({machine.name, machine.cpus, machine.memory_bytes, machine.gpus});
  return rooms;
}

Result<std::unique_ptr<campaign::Campaigns>> open_campaigns(const Config& config, const DataDirectory& data,
                                                            const std::string& own_endpoint,
                                                            std::function<signing::Keys()> own_keys,
                                                            objects::Objects& objects, Clock& clock,
                                                            Random& random) {
  campaign::Settings settings;
  settings.home = config.region;
  settings.regions = config.regions;
  settings.regions.push_back(config.region);
  for (const auto& [region, remote] : config.remote_regions) settings.regions.push_back(region);
  client::Settings own;
  own.endpoint = own_endpoint;
  own.ca_bundle = data.file("tls/ca.pem");
  own.attempts_max = kAttemptsOfApi;
  own.connect_limit = kConnectLimit;
  own.answer_limit = kAnswerLimit;
  settings.open_client = [own, own_keys = std::move(own_keys), &clock](const std::string& region) {
    auto mine = own;
    mine.region = region;
    mine.keys = own_keys();
    return client::open_client(std::move(mine), clock);
  };
  settings.open_objects = [remotes = config.remote_regions, &objects,
                           &clock](const std::string& region) -> Result<std::unique_ptr<objects::Objects>> {
    const auto remote = remotes.find(region);
    if (remote == remotes.end()) return std::unique_ptr<objects::Objects>(new LentObjects(objects));
    objects::S3Settings s3;
    s3.endpoint = remote->second.endpoint;
    s3.region = region;
    s3.ca_bundle = remote->second.ca_bundle;
    s3.keys = [keys = remote->second.keys] { return keys; };
    s3.connect_limit = kConnectLimit;
    s3.attempts_max = kAttemptsOfObjects;
    return objects::open_s3(std::move(s3), clock);
  };
  auto catalogue = config.catalogue_url.empty()
                       ? TRY(campaign::open_sqlite_catalogue(data.file("catalogue.db"), clock))
                       : campaign::open_postgres_catalogue(config.catalogue_url);
  auto store = TRY(campaign::Store::open(data.file("campaigns.db")).in("opening the campaigns"));
  return campaign::make_campaigns(std::move(settings), std::move(store), std::move(catalogue), clock, random);
}

}  // namespace trainyard::apps
