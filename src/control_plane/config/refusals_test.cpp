// Tests each key of the configuration file with a value of a wrong type, and each number with a
// value out of its range. The readers list their keys in the error for an unknown key, so that a
// key without a row in this file fails.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text.hpp"
#include "config/config.hpp"

namespace trainyard::config {
namespace {

constexpr const char* kText = "a string";
constexpr const char* kFlag = "true or false";
constexpr const char* kNumber = "a number";
constexpr const char* kWhole = "a whole number";
constexpr const char* kList = "a list of strings";
constexpr const char* kTexts = "a table of strings";

constexpr const char* kPod = "image = 'a'\nagents_listen = '10.0.0.1:4570'\n";
constexpr const char* kCluster = "[kubernetes]\nimage = 'a'\nagents_listen = '10.0.0.1:4570'\n";

struct Subject {
  std::string_view path;       // as in errors; "": keys outside of tables
  const char* needed = "";     // the lines of its required keys
  const char* preceding = "";  // the tables that it requires
};

constexpr Subject kSubjects[] = {
    {""},
    {"access_key", "id = 'a'\nsecret = 'b'\n"},
    {"user", "name = 'ana'\n"},
    {"group", "name = 'team'\n"},
    {"role", "name = 'Train'\n"},
    {"policy", "name = 'read'\ndocument = '{}'\n"},
    {"peer", "access_key_id = 'a'\n"},
    {"rate_limits"},
    {"server"},
    {"network"},
    {"network.roles.\"r\""},
    {"regions.\"eu\""},
    {"ledger", "url = 'postgresql:///ledger'\n"},
    {"storage"},
    {"objects", "endpoint = 'http://a'\n"},
    {"storage_quota", "bucket = 'b'\ngib = 1\n"},
    {"logs"},
    {"log_webhooks.\"w\"", "url = 'http://a'\n"},
    {"log_sources.\"s\"", "arn = 'arn:a'\nlog_type = 't'\nlog_group = 'g'\n"},
    {"metrics"},
    {"audit"},
    {"catalogue"},
    {"file_systems.\"fs\"", "directory = '/a'\n"},
    {"fsx", "directory = '/a'\n"},
    {"volumes.\"/v\""},
    {"notifications"},
    {"notifications.mail", "url = 'smtp://a'\nfrom = 'a@b'\n"},
    {"notifications.commands.\"c\"", "command = ['/a']\ntopics = ['*']\n"},
    {"prometheus"},
    {"prometheus.tokens"},
    {"prometheus.remote_write", "name = 'a'\nurl = 'http://a'\n"},
    {"otlp", "name = 'a'\nurl = 'http://a'\n"},
    {"jobs"},
    {"ulimits"},
    {"spot"},
    {"machine", "name = 'a'\ncpus = 1\nmemory_gib = 1\n"},
    {"quota", "instance_type = 'ml.m5.large'\ncount = 1\n"},
    {"prices"},
    {"prices.instance", "type = 'a'\n"},
    {"slurm"},
    {"slurm.queues.\"q\""},
    {"slurm.instance_types.\"t\""},
    {"slurm.users.\"u\""},
    {"slurm.node_kinds.\"k\""},
    {"kubernetes", kPod},
    {"kubernetes.queues.\"q\"", "", kCluster},
    {"kubernetes.instance_types.\"t\"", "", kCluster},
    {"kubernetes.mounts.\"/srv/m\"", "", kCluster},
    {"images.\"i\"", "runtime = 'machine'\n"},
    {"image_policy"},
    {"image_policy.allow", "pattern = '*'\n"},
    {"registry", "host = 'a'\nusername = 'b'\npassword = 'c'\n"},
};

struct Row {
  std::string_view table;
  std::string_view key;
  const char* type;
  const char* value = nullptr;  // out of range; nullptr: each value of the type is in range
  const char* shown = nullptr;  // that value in the error
  const char* accepted = nullptr;
};

constexpr Row kRows[] = {
    {"", "account_id", kText, "'12'", "\"12\"", "twelve digits"},
    {"", "region", kText},
    {"", "roles", kText, "'some'", "\"some\"", "\"closed\" ("},
    {"", "isolation", kText, "'none'", "\"none\"", "\"strict\" or \"best-effort\""},
    {"", "posix_users", kTexts, "{ana = 'root'}", "\"ana\": 'root'", "\"UID:GID\""},
    {"access_key", "id", kText},
    {"access_key", "secret", kText},
    {"access_key", "user", kText, "\"a\\u0007b\"", "\"a\\u0007b\"", "1 to 64 letters"},
    {"user", "name", kText, "'a b'", "\"a b\"", "1 to 64 letters"},
    {"user", "policies", kList},
    {"user", "policy", kText},
    {"user", "policy_file", kText},
    {"user", "groups", kList},
    {"user", "boundary", kText},
    {"group", "name", kText, "''", "\"\"", "1 to 64 letters"},
    {"group", "policies", kList},
    {"group", "policy", kText},
    {"group", "policy_file", kText},
    {"role", "name", kText, "'a/b'", "\"a/b\"", "1 to 64 letters"},
    {"role", "policies", kList},
    {"role", "policy", kText},
    {"role", "policy_file", kText},
    {"role", "description", kText},
    {"role", "max_session_seconds", kWhole, "899", "899", "between 900 and 43200"},
    {"role", "boundary", kText},
    {"role", "trust", kText},
    {"role", "trust_file", kText},
    {"policy", "name", kText},
    {"policy", "document", kText},
    {"policy", "document_file", kText},
    {"peer", "access_key_id", kText, "''", "\"\"", "the access key of a user of this server"},
    {"peer", "users", kList},
    {"peer", "roles", kList},
    {"rate_limits", "reads_per_second", kNumber, "nan", "nan", "between 0 (no limit) and 1000000"},
    {"rate_limits", "changes_per_second", kNumber, "-0.5", "-0.5", "between 0 (no limit) and"},
    {"rate_limits", "objects_per_second", kNumber, "inf", "inf", "between 0 (no limit) and"},
    {"rate_limits", "burst_seconds", kNumber, "0", "0", "greater than 0, and at most 3600"},
    {"server", "listen", kText, "'nowhere'", "'nowhere'", "ADDRESS:PORT, like 127.0.0.1:4566"},
    {"server", "allow_plain_http_from_other_machines", kFlag},
    {"server", "certificate_names", kList},
    {"server", "metrics_listen", kText, "'a:65536'", "'a:65536'", "ADDRESS:PORT"},
    {"server", "log_file", kText},
    {"server", "log_bytes_max", kWhole, "65535", "65535", "between 65536 and 1099511627776"},
    {"server", "log_files", kWhole, "0", "0", "between 1 and 1000"},
    {"network", "pool", kText},
    {"network", "name_servers", kList},
    {"network", "http_proxy", kText},
    {"network", "https_proxy", kText},
    {"network", "no_proxy", kText},
    {"network", "ca_bundle", kText},
    {"network", "package_index", kText},
    {"network", "deny", kList, "['10.0.0.0/99']", "10.0.0.0/99", "like 10."},
    {"network", "allow", kList, "['x']", "'x'", "like 10."},
    {"network", "connections_per_job_max", kWhole, "1048577", "1048577", "between 1 and 1048576"},
    {"network.roles.\"r\"", "deny", kList, "['10.0.0.0/8', 'y']", "'y'", "like 10."},
    {"network.roles.\"r\"", "allow", kList, "['']", "''", "like 10."},
    {"regions.\"eu\"", "endpoint", kText, "'ftp://a'", "\"ftp://a\"", "a URL, http:// or https://"},
    {"regions.\"eu\"", "access_key_id", kText},
    {"regions.\"eu\"", "secret_access_key", kText},
    {"regions.\"eu\"", "ca_bundle", kText},
    {"ledger", "url", kText},
    {"ledger", "password_file", kText},
    {"ledger", "lease_seconds", kNumber, "0.5", "0.5", "between 1 and 300"},
    {"storage", "disk_reserve_mib", kWhole, "-1", "-1", "between 0 (none) and 1073741824"},
    {"storage", "upload_expiry_days", kWhole, "0", "0", "between 1 and 3650"},
    {"objects", "endpoint", kText, "'minio'", "\"minio\"", "a URL, http:// or https://"},
    {"objects", "region", kText},
    {"objects", "access_key_id", kText},
    {"objects", "secret_access_key", kText},
    {"objects", "ca_bundle", kText},
    {"storage_quota", "bucket", kText},
    {"storage_quota", "user", kText},
    {"storage_quota", "gib", kNumber, "-1", "-1", "between 0 and 1048576"},
    {"storage_quota", "objects", kWhole, "-7", "-7", "0 or more"},
    {"logs", "retention_days", kWhole, "-1", "-1", "between 0 (forever) and 36525"},
    {"logs", "delivery_seconds", kWhole, "86401", "86401", "between 0 (at once) and 86400"},
    {"log_webhooks.\"w\"", "url", kText, "'a'", "\"a\"", "a URL, http:// or https://"},
    {"log_webhooks.\"w\"", "authorization_file", kText},
    {"log_webhooks.\"w\"", "ca_bundle", kText},
    {"log_webhooks.\"w\"", "stands_for", kList, "['x']", "\"x\"", "the ARN of a stream"},
    {"log_sources.\"s\"", "arn", kText, "'a'", "\"a\"", "the ARN of a resource"},
    {"log_sources.\"s\"", "log_type", kText, "''", "\"\"", "like ACCESS_LOGS"},
    {"log_sources.\"s\"", "log_group", kText, "''", "\"\"", "the log group with its logs"},
    {"metrics", "all_points_days", kWhole, "0", "0", "between 1 and 3650"},
    {"metrics", "five_minute_days", kWhole, "3651", "3651", "between 1 and 3650"},
    {"metrics", "hour_days", kWhole, "-3", "-3", "between 1 and 3650"},
    {"metrics", "series_of_job_max", kWhole, "1000001", "1000001", "between 1 and 1000000"},
    {"audit", "retention_days", kWhole, "0", "0", "between 1 and 36500"},
    {"audit", "disk_gib", kWhole, "0", "0", "between 1 and 1048576"},
    {"catalogue", "url", kText},
    {"catalogue", "query_url", kText},
    {"file_systems.\"fs\"", "directory", kText, "'/'", "\"/\"", "an absolute path, and not /"},
    {"file_systems.\"fs\"", "type", kText, "'NFS'", "\"NFS\"", "\"EFS\" or \"FSxLustre\""},
    {"file_systems.\"fs\"", "mount_name", kText},
    {"file_systems.\"fs\"", "read_only", kFlag},
    {"file_systems.\"fs\"", "users", kList, "['a b']", "\"a b\"", "1 to 64 letters"},
    {"file_systems.\"fs\"", "roles", kList, "['']", "\"\"", "the name or ARN of a role"},
    {"fsx", "directory", kText, "'here'", "\"here\"", "an absolute path, and not /"},
    {"volumes.\"/v\"", "directory", kText, "'a'", "\"a\"", "an absolute path, and not /"},
    {"volumes.\"/v\"", "read_only", kFlag},
    {"volumes.\"/v\"", "users", kList, "['']", "\"\"", "1 to 64 letters"},
    {"volumes.\"/v\"", "roles", kList, "['a', '']", "\"\"", "the name or ARN of a role"},
    {"notifications", "allow_networks", kList, "['10.0.0.0/40']", "10.0.0.0/40", "like 10."},
    {"notifications", "ca_bundle", kText},
    {"notifications.mail", "url", kText, "'http://x'", "\"http://x\"", "smtp://HOST:PORT"},
    {"notifications.mail", "from", kText, "'a'", "\"a\"", "a mail address, like"},
    {"notifications.mail", "user", kText},
    {"notifications.mail", "password_file", kText},
    {"notifications.mail", "ca_bundle", kText},
    {"notifications.mail", "require_tls", kFlag},
    {"notifications.commands.\"c\"", "command", kList, "['sh', '-c']", "[\"sh\", \"-c\"]",
     "the absolute path of a program"},
    {"notifications.commands.\"c\"", "topics", kList, "[]", "[]", "\"*\" for all"},
    {"notifications.commands.\"c\"", "timeout_seconds", kWhole, "601", "601", "between 1 and 600"},
    {"prometheus", "series_of_job_max", kWhole, "0", "0", "between 1 and 1000000"},
    {"prometheus", "series_max", kWhole, "-1", "-1", "between 1 and 1000000"},
    {"prometheus", "scrape_series_max", kWhole, "1000001", "1000001", "between 1 and 1000000"},
    {"prometheus.tokens", "token_file", kText, "''", "\"\"", "the name of a file with the token"},
    {"prometheus.tokens", "user", kText},
    {"prometheus.remote_write", "name", kText, "'A b'", "\"A b\"", "lower-case letters"},
    {"prometheus.remote_write", "url", kText, "'a'", "\"a\"", "a URL, http:// or https://"},
    {"prometheus.remote_write", "authorization_file", kText},
    {"prometheus.remote_write", "headers_file", kText},
    {"prometheus.remote_write", "ca_bundle", kText},
    {"otlp", "name", kText, "''", "\"\"", "1 to 64 lower-case letters"},
    {"otlp", "url", kText, "'ftp://a'", "\"ftp://a\"", "a URL, http:// or https://"},
    {"otlp", "authorization_file", kText},
    {"otlp", "headers_file", kText},
    {"otlp", "ca_bundle", kText},
    {"jobs", "devices", kList, "['/etc/passwd']", "\"/etc/passwd\"", "a device file below /dev"},
    {"jobs", "gpu_memory", kText, "'x'", "\"x\"", "\"clear\" ("},
    {"jobs", "file_mode", kText, "'link'", "\"link\"", "\"mount\" ("},
    {"jobs", "stop_grace_seconds", kWhole, "3601", "3601", "between 0 and 3600"},
    {"jobs", "stalled_after_seconds", kWhole, "-1", "-1",
     "between 0 (never) and 2419200 (28 days)"},
    {"jobs", "images_gib_max", kWhole, "-1", "-1", "between 0 and 1048576"},
    {"ulimits", "rtprio", kWhole, "-2", "-2", "0 or more, or -1 for no limit"},
    {"ulimits", "nice", kWhole, "-2", "-2", "0 or more, or -1 for no limit"},
    {"ulimits", "memlock", kWhole, "-3", "-3", "0 or more, or -1 for no limit"},
    {"spot", "notice_seconds", kWhole, "3601", "3601", "between 0 and 3600"},
    {"spot", "interruptions_per_host_hour", kNumber, "3601", "3601", "between 0 and 3600"},
    {"spot", "seed", kWhole},
    {"spot", "trace", kText},
    {"machine", "name", kText, "''", "\"\"", "a name, which each machine needs"},
    {"machine", "cpus", kNumber, "0", "0", "greater than 0, and at most 1000000"},
    {"machine", "memory_gib", kNumber, "262145", "262145", "greater than 0, and at most 262144"},
    {"machine", "gpus", kWhole, "1001", "1001", "between 0 and 1000"},
    {"machine", "gpu_devices", kList, "['/etc/x']", "\"/etc/x\"", "a device file below /dev"},
    {"machine", "topology", kText},
    {"quota", "user", kText, "'a b'", "\"a b\"", "the name of a user or a role"},
    {"quota", "region", kText},
    {"quota", "instance_type", kText, "'big'", "\"big\"", "like \"ml.m5.xlarge\""},
    {"quota", "count", kWhole, "-1", "-1", "between 0 and 1000000000000: instances"},
    {"prices", "list", kFlag},
    {"prices", "currency", kText},
    {"prices.instance", "type", kText, "''", "\"\"", "the instance type of this price"},
    {"prices.instance", "region", kText},
    {"prices.instance", "on_demand", kNumber, "-0.25", "-0.25", "between 0 and 1000000000: of one"},
    {"prices.instance", "spot", kNumber, "1e10", "10000000000", "between 0 and 1000000000: of one"},
    {"slurm", "partition", kText, "'a b'", "\"a b\"", "a value of sbatch's option"},
    {"slurm", "account", kText, "'-a'", "\"-a\"", "a value of sbatch's option"},
    {"slurm", "qos", kText, "'--uid=0'", "\"--uid=0\"", "a value of sbatch's option"},
    {"slurm", "constraint", kText, "\"a\\nb\"", "\"a\\nb\"", "a value of sbatch's option"},
    {"slurm", "reservation", kText, "' '", "\" \"", "a value of sbatch's option"},
    {"slurm", "licenses", kText, "' '", "\" \"", "a value of sbatch's option"},
    {"slurm", "gpu_type", kText, "' '", "\" \"", "a value of sbatch's option"},
    {"slurm", "exclusive", kFlag},
    {"slurm", "server_address", kText, "' '", "\" \"", "without blanks, of at most 256 bytes"},
    {"slurm", "agents_listen", kText, "'a:0'", "\"a:0\"", "HOST:PORT, with a fixed port"},
    {"slurm", "config_file", kText},
    {"slurm", "node_directory", kText, "''", "\"\"", "an absolute path on the nodes"},
    {"slurm", "program_directory", kText, "'a'", "\"a\"", "an absolute path on the nodes"},
    {"slurm", "rest_url", kText, "'slurm.lan'", "\"slurm.lan\"", "a URL, http:// or https://"},
    {"slurm", "rest_version", kText, "'-1'", "\"-1\"", "which does not begin with '-'"},
    {"slurm", "rest_user", kText, "'a b'", "\"a b\"", "without blanks"},
    {"slurm", "rest_token_file", kText},
    {"slurm", "rest_ca_bundle", kText},
    {"slurm", "time_margin_minutes", kWhole, "-1", "-1", "between 0 and 10080"},
    {"slurm", "idle_seconds", kWhole, "3601", "3601", "between 0 and 3600"},
    {"slurm", "node_idle_seconds", kWhole, "0", "0", "between 1 and 604800"},
    {"slurm", "require_user", kFlag},
    {"slurm", "user_directory", kText, "'a'", "\"a\"", "an absolute path on the nodes"},
    {"slurm", "user_ports", kText, "'80-90'", "\"80-90\"",
     "FIRST-LAST, like 20000-29999, ports from"},
    {"slurm", "system_accounts", kList, "['-u']", "\"-u\"", "the name of a Unix account"},
    {"slurm.queues.\"q\"", "partition", kText, "'-a'", "\"-a\"", "a value of sbatch's option"},
    {"slurm.queues.\"q\"", "account", kText},
    {"slurm.queues.\"q\"", "qos", kText},
    {"slurm.queues.\"q\"", "constraint", kText},
    {"slurm.queues.\"q\"", "reservation", kText},
    {"slurm.queues.\"q\"", "licenses", kText},
    {"slurm.queues.\"q\"", "gpu_type", kText},
    {"slurm.queues.\"q\"", "exclusive", kFlag},
    {"slurm.instance_types.\"t\"", "partition", kText, "'-'", "\"-\"",
     "a value of sbatch's option"},
    {"slurm.instance_types.\"t\"", "account", kText},
    {"slurm.instance_types.\"t\"", "qos", kText},
    {"slurm.instance_types.\"t\"", "constraint", kText},
    {"slurm.instance_types.\"t\"", "reservation", kText},
    {"slurm.instance_types.\"t\"", "licenses", kText},
    {"slurm.instance_types.\"t\"", "gpu_type", kText},
    {"slurm.instance_types.\"t\"", "exclusive", kFlag},
    {"slurm.users.\"u\"", "account", kText, "'a b'", "\"a b\"", "a value of sbatch's option"},
    {"slurm.users.\"u\"", "qos", kText},
    {"slurm.users.\"u\"", "reservation", kText},
    {"slurm.users.\"u\"", "unix_user", kText},
    {"slurm.node_kinds.\"k\"", "feature", kText, "''", "\"\"", "a feature of nodes in slurm.conf"},
    {"slurm.node_kinds.\"k\"", "nodes_max", kWhole, "-1", "-1", "between 0 and 20000"},
    {"kubernetes", "kubeconfig", kText},
    {"kubernetes", "context", kText},
    {"kubernetes", "namespace", kText, "'..'", "\"..\"", "the name of an object of Kubernetes"},
    {"kubernetes", "image", kText, "''", "\"\"", "the image with Trainyard's programs"},
    {"kubernetes", "node_selector", kTexts, "{a = 'b c'}", "{a = \"b c\"}", "labels of nodes"},
    {"kubernetes", "tolerations", kList, "['a:Never']", "\"a:Never\"", "NoSchedule"},
    {"kubernetes", "priority_class", kText, "'High'", "\"High\"", "a-z, 0-9, - and ."},
    {"kubernetes", "service_account", kText, "'-'", "\"-\"", "a-z, 0-9, - and ."},
    {"kubernetes", "runtime_class", kText, "'a/b'", "\"a/b\"", "a-z, 0-9, - and ."},
    {"kubernetes", "local_queue", kText, "'A'", "\"A\"", "a-z, 0-9, - and ."},
    {"kubernetes", "server_address", kText, "'a b'", "\"a b\"", "a text without blanks"},
    {"kubernetes", "agents_listen", kText, "'a'", "\"a\"", "HOST:PORT, with a fixed port"},
    {"kubernetes", "node_directory", kText, "'a'", "\"a\"", "an absolute path in the pods"},
    {"kubernetes", "program_directory", kText, "'/'", "\"/\"", "an absolute path in the pods"},
    {"kubernetes", "time_margin_minutes", kWhole, "10081", "10081", "between 0 and 10080"},
    {"kubernetes.queues.\"q\"", "node_selector", kTexts},
    {"kubernetes.queues.\"q\"", "tolerations", kList, "[':']", "\":\"", "like dedicated="},
    {"kubernetes.queues.\"q\"", "priority_class", kText, "'A'", "\"A\"", "a-z, 0-9, - and ."},
    {"kubernetes.queues.\"q\"", "service_account", kText},
    {"kubernetes.queues.\"q\"", "runtime_class", kText},
    {"kubernetes.queues.\"q\"", "local_queue", kText},
    {"kubernetes.instance_types.\"t\"", "node_selector", kTexts},
    {"kubernetes.instance_types.\"t\"", "tolerations", kList, "['']", "\"\"", "like dedicated="},
    {"kubernetes.instance_types.\"t\"", "priority_class", kText, "'A'", "\"A\"", "a-z, 0-9"},
    {"kubernetes.instance_types.\"t\"", "service_account", kText},
    {"kubernetes.instance_types.\"t\"", "runtime_class", kText},
    {"kubernetes.instance_types.\"t\"", "local_queue", kText},
    {"kubernetes.mounts.\"/srv/m\"", "claim", kText, "'A'", "\"A\"", "a-z, 0-9, - and ."},
    {"kubernetes.mounts.\"/srv/m\"", "directory", kText},
    {"images.\"i\"", "runtime", kText, "'x'", "\"x\"", "\"machine\""},
    {"images.\"i\"", "image", kText},
    {"images.\"i\"", "python", kText, "'/none'", "\"/none\"", "a directory with bin/python3"},
    {"images.\"i\"", "mounts", kTexts},
    {"images.\"i\"", "entrypoint", kList},
    {"images.\"i\"", "environment", kTexts},
    {"image_policy", "oci_directories", kList, "['a']", "\"a\"", "an absolute path, and not /"},
    {"image_policy.allow", "pattern", kText, "''", "\"\"", "an image's name, in which *"},
    {"image_policy.allow", "roles", kList},
    {"registry", "host", kText, "'a/b'", "\"a/b\"", "a registry's name"},
    {"registry", "username", kText, "'a:b'", "\"a:b\"", "a name without a ':'"},
    {"registry", "password", kText},
    {"registry", "password_file", kText},
    {"registry", "users", kList},
    {"registry", "roles", kList},
};

// Numbers without a range.
const std::set<std::string> kUnlimited = {"spot.seed"};

// Keys whose values may be, or contain, a password: errors have only the type of the value.
const std::set<std::string> kSecrets = {"access_key.secret",    "regions.\"eu\".secret_access_key",
                                        "ledger.url",           "objects.secret_access_key",
                                        "catalogue.url",        "catalogue.query_url",
                                        "registry.password",    "images.\"i\".environment",
                                        "network.http_proxy",   "network.https_proxy",
                                        "network.package_index"};

std::string name_of(std::string_view table, std::string_view key) {
  return (table.empty() ? "" : std::string(table) + ".") + std::string(key);
}

// Makes a file in which a table has the value for the key, and its required keys.
std::string file_with(const Subject& subject, std::string_view key, const std::string& value) {
  std::string text = subject.preceding;
  if (!subject.path.empty()) text += "[" + std::string(subject.path) + "]\n";
  for (const auto line : split(subject.needed, '\n'))
    if (!line.starts_with(std::string(key) + " =")) text += std::string(line) + "\n";
  return text + std::string(key) + " = " + value + "\n";
}

std::string error_of(const Subject& subject, std::string_view key, const std::string& value) {
  const auto config = parse_config(file_with(subject, key, value), "server.toml");
  return config ? "" : config.error().message;
}

std::vector<std::string> known_keys(const Subject& subject) {
  const std::string error = error_of(subject, "no_such_key", "1");
  constexpr std::string_view kBefore = "known keys: ";
  const size_t at = error.find(kBefore);
  EXPECT_NE(at, error.npos) << subject.path << ": " << error;
  std::vector<std::string> keys;
  if (at != error.npos)
    for (const auto key : split(std::string_view(error).substr(at + kBefore.size()), ','))
      keys.emplace_back(trim(key));
  return keys;
}

bool is_table(const std::string& name) {
  return std::ranges::any_of(kSubjects, [&](const Subject& subject) {
    return subject.path == name || subject.path.starts_with(name + ".");
  });
}

const Row* find_row(std::string_view table, std::string_view key) {
  const auto found = std::ranges::find_if(
      kRows, [&](const Row& row) { return row.table == table && row.key == key; });
  return found == std::end(kRows) ? nullptr : &*found;
}

const Subject& subject_of(const Row& row) {
  return *std::ranges::find(kSubjects, row.table, &Subject::path);
}

void expect_parts(const std::string& error, const std::vector<std::string>& parts) {
  for (const auto& part : parts)
    EXPECT_NE(error.find(part), error.npos) << "without " << part << ": " << error;
}

constexpr const char* kDate = "2026-11-20";  // no key has this type

TEST(ConfigRefusals, NameTheTypeOfEachKeyAndTheRejectedValue) {
  for (const Subject& subject : kSubjects) {
    for (const auto& key : known_keys(subject)) {
      const std::string name = name_of(subject.path, key);
      const std::string error = error_of(subject, key, kDate);
      const Row* row = find_row(subject.path, key);
      if (is_table(name)) {
        expect_parts(error, {name + " must be ", "table", "[" + key, ", not 2026-11-20 (line "});
      } else if (!row) {
        ADD_FAILURE() << "kRows has no row for the key " << name;
      } else {
        const bool secret = kSecrets.contains(name);
        expect_parts(error,
                     {"reading the config server.toml: " + name + " must be " + row->type,
                      std::string(", not ") + (secret ? "a date or a time" : kDate), " (line "});
        EXPECT_EQ(error.find(kDate) == error.npos, secret) << error;
      }
    }
  }
}

TEST(ConfigRefusals, NameTheRangeOfEachNumber) {
  for (const Row& row : kRows) {
    if (!row.value) continue;
    const std::string error = error_of(subject_of(row), row.key, row.value);
    expect_parts(error, {row.key == "posix_users" ? "posix_users." : name_of(row.table, row.key),
                         row.shown, row.accepted});
  }
}

TEST(ConfigRefusals, ExistForTheRangeOfEachNumber) {
  for (const Row& row : kRows) {
    const std::string name = name_of(row.table, row.key);
    const bool number = row.type == kNumber || row.type == kWhole;
    EXPECT_TRUE(!number || row.value || kUnlimited.contains(name)) << name;
    if (!number || !row.value) continue;
    const std::string least = row.type == kNumber ? "-1e300" : "-9223372036854775808";
    expect_parts(error_of(subject_of(row), row.key, least), {name, row.accepted, ", not -"});
  }
}

TEST(ConfigRefusals, HaveNoRowsOfUnknownKeys) {
  std::map<std::string_view, std::set<std::string>> known;
  for (const Subject& subject : kSubjects)
    for (auto& key : known_keys(subject)) known[subject.path].insert(std::move(key));
  for (const Row& row : kRows)
    EXPECT_TRUE(known[row.table].contains(std::string(row.key))) << name_of(row.table, row.key);
}

TEST(ConfigRefusals, ShortenLongValues) {
  const std::string error = error_of({""}, "account_id", "'" + std::string(1000, '7') + "'");
  expect_parts(error,
               {"account_id must be twelve digits, not \"777", "...\" (line 2 of the file)"});
  EXPECT_LT(error.size(), 250u);
  std::string list = "[1";
  for (int number = 2; number < 1000; ++number) list += ", " + std::to_string(number);
  expect_parts(
      error_of({"jobs"}, "devices", list + "]"),
      {"jobs.devices must be a list of strings, not [1, 2, 3", "... (line 3 of the file)"});
}

TEST(ConfigRefusals, ShowValuesOfEachTypeAsInTheFile) {
  for (const auto& [value, shown] : std::initializer_list<std::pair<const char*, const char*>>{
           {"true", "true"},
           {"-7", "-7"},
           {"0.1", "0.1"},
           {"nan", "nan"},
           {"07:32:00", "07:32:00"},
           {"{a = 1, b = [true]}", "b = [true]"},
           {"['x', {y = \"z\\\"\\\\\\t\"}]", "[\"x\", {y = \"z\\\"\\\\\\t\"}]"}})
    expect_parts(error_of({""}, "account_id", value), {"account_id must be a string, not ", shown});
  expect_parts(error_of({"server"}, "log_files", "'seven'"),
               {"server.log_files must be a whole number, not \"seven\" (line 3 of the file)"});
  expect_parts(error_of({""}, "posix_users", "'ana'"),
               {"posix_users must be a table of strings, not \"ana\""});
}

TEST(ConfigRefusals, NameMissingKeysAndWhatTheyMustBe) {
  for (const auto& [text, error] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[[machine]]\nname = 'a'",
            "machine[0].cpus is missing: it must be greater than 0, and"},
           {"[[quota]]\ninstance_type = 'ml.m5.large'", "quota[0].count is missing: it must be"},
           {"[slurm]\nrest_url = 'http://a'",
            "slurm.rest_token_file is missing: it must be the file"},
           {"[kubernetes]\nimage = 'a'",
            "kubernetes.agents_listen is missing: it must be HOST:PORT"}}) {
    const auto config = parse_config(text, "server.toml");
    ASSERT_FALSE(config) << text;
    expect_parts(config.error().message, {error});
  }
}

}  // namespace
}  // namespace trainyard::config
