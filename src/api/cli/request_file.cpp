#include "cli/request_file.hpp"

#include <algorithm>
#include <sstream>
#include <toml.hpp>

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/arguments.hpp"

namespace trainyard::cli {
namespace {

constexpr int64_t kVolumeGibDefault = 30;
constexpr int64_t kMaxRuntimeSecondsDefault = 86'400;  // as AWS
constexpr size_t kNameBytesMax = 63;                   // as AWS
constexpr int kDepthMax = 50;
constexpr const char* kCodeChannel = "code";
constexpr int kContainerLogLevel = 20;  // INFO, as the SDK
constexpr const char* kShortKeys[] = {"name",
                                      "image",
                                      "command",
                                      "arguments",
                                      "instance_type",
                                      "instance_count",
                                      "role",
                                      "volume_gib",
                                      "max_runtime_seconds",
                                      "max_wait_seconds",
                                      "spot",
                                      "output",
                                      "checkpoints",
                                      "tensorboard",
                                      "channels",
                                      "code",
                                      "input_mode",
                                      "metrics",
                                      "environment",
                                      "hyperparameters",
                                      "tags"};

Result<Json> to_json(const toml::value& value, int depth) {
  if (depth > kDepthMax)
    return invalid("the file is nested too deeply: at most " + std::to_string(kDepthMax) +
                   " levels");
  if (value.is_boolean()) return Json(value.as_boolean());
  if (value.is_integer()) return Json(value.as_integer());
  if (value.is_floating()) return Json(value.as_floating());
  if (value.is_string()) return Json(value.as_string().str);
  if (value.is_array()) {
    Json list = Json::array();
    for (const auto& each : value.as_array()) list.push_back(TRY(to_json(each, depth + 1)));
    return list;
  }
  if (value.is_table()) {
    Json object = Json::object();
    for (const auto& [key, each] : value.as_table()) object[key] = TRY(to_json(each, depth + 1));
    return object;
  }
  std::ostringstream text;
  text << value;
  return Json(text.str());
}

Error must_be(const std::string& key, const std::string& wanted) {
  return invalid(key + " must be " + wanted);
}

// Converts a value to text, as the API requires: 10 to "10", true to "true".
Result<std::string> text_of(const Json& value, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return dump(value);
  return must_be(key, "a text or a number");
}

Result<Json> texts_of(const Json& file, const char* key) {
  Json out = Json::object();
  if (!file[key].is_object()) return must_be(key, std::string("a table, [") + key + "]");
  for (const auto& [name, value] : file[key].items())
    out[name] = TRY(text_of(value, std::string(key) + "." + name));
  return out;
}

Result<Json> strings_of(const Json& file, const char* key) {
  if (file[key].is_string()) return Json::array({file[key]});
  const bool all =
      file[key].is_array() && std::all_of(file[key].begin(), file[key].end(),
                                          [](const Json& word) { return word.is_string(); });
  if (!all) return must_be(key, "a list of texts");
  return file[key];
}

// Reads the command: a text with blanks is run by a shell, one without is a program.
Result<Json> command_of(const Json& file) {
  Json words = TRY(strings_of(file, "command"));
  if (file["command"].is_string() &&
      words[0].get<std::string>().find_first_of(" \t\n") != std::string::npos)
    return Json::array({"/bin/sh", "-c", words[0]});
  return words;
}

bool is_local(const std::string& uri) {
  return uri.starts_with("./") || uri.starts_with("../") || uri.starts_with('/') || uri == "." ||
         uri == ".." || uri.starts_with("file://");
}

std::string local_path(const std::string& uri) {
  return uri.starts_with("file://") ? uri.substr(7) : uri;
}

// Makes a job's name from the name of a file and the time: "My model.toml" gives
// "My-model-20261120t094500".
std::string name_from(const std::string& file, Instant now) {
  std::string name;
  for (const char c : file.substr(0, file.rfind('.'))) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (fits)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  const std::string end = to_lower(to_basic_iso8601(now).substr(0, 15));  // 20261120t094500
  name = name.substr(0, kNameBytesMax - 1 - end.size());
  while (name.ends_with('-')) name.pop_back();
  return (name.empty() ? "job" : name) + "-" + end;
}

Result<void> check_keys(const Json& file) {
  const std::vector<std::string> known(std::begin(kShortKeys), std::end(kShortKeys));
  for (const auto& [key, value] : file.items()) {
    if (!key.empty() && key[0] >= 'A' && key[0] <= 'Z') continue;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest(key, known);
    const std::string names = join(known, ", ");
    return invalid("unknown key '" + key + "'" +
                   (near.empty() ? "" : ": did you mean " + near + "?") + " (short keys: " + names +
                   "; the API's own begin with a capital letter)");
  }
  return {};
}

// Sets request.PLACE.KEY to `value`, unless the file has set it.
void set(Json& request, const char* place, const char* key, Json value) {
  Json& at = place[0] == '\0' ? request : request[place];
  if (at.is_null()) at = Json::object();
  if (at.is_object() && !at.contains(key)) at[key] = std::move(value);
}

Json channel_from(const std::string& name, const std::string& uri,
                  const std::string& distribution) {
  return {
      {"ChannelName", name},
      {"DataSource",
       {{"S3DataSource",
         {{"S3DataType", "S3Prefix"}, {"S3Uri", uri}, {"S3DataDistributionType", distribution}}}}}};
}

Result<void> add_channels(const Json& file, Json& request) {
  if (!file.contains("channels")) return {};
  if (!file["channels"].is_object()) return must_be("channels", "a table, [channels]");
  Json& list = request["InputDataConfig"];
  if (list.is_null()) list = Json::array();
  for (const auto& [name, value] : file["channels"].items()) {
    if (value.is_string()) {
      list.push_back(channel_from(name, value.get<std::string>(), "FullyReplicated"));
      continue;
    }
    if (!value.is_object())
      return must_be("channels." + name, "a path, an s3:// URI, or a table with `from`");
    Json channel =
        channel_from(name, TRY(string_at(value, "from").in("channels." + name)),
                     value.value("sharded", false) ? "ShardedByS3Key" : "FullyReplicated");
    for (const auto& [from, to] : {std::pair{"content_type", "ContentType"}, {"mode", "InputMode"}})
      if (value.contains(from)) channel[to] = value[from];
    list.push_back(std::move(channel));
  }
  return {};
}

bool has_entry(const Json& file) {
  const auto code = file.find("code");
  return code != file.end() && code->is_object() && code->contains("entry");
}

Result<std::string> directory_of(const Json& code) {
  const std::string directory =
      code.is_string() ? code.get<std::string>() : TRY(string_at(code, "directory").in("code"));
  if (!is_local(directory) && !directory.starts_with("s3://"))
    return must_be("code.directory", "a path that begins with ./ or /, or an s3:// URI");
  return directory;
}

// Converts [code] without an entry to a channel.
Result<void> add_code(const Json& file, Json& request) {
  if (!file.contains("code") || has_entry(file)) return {};
  Json& list = request["InputDataConfig"];
  if (list.is_null()) list = Json::array();
  list.push_back(channel_from(kCodeChannel, TRY(directory_of(file["code"])), "FullyReplicated"));
  return {};
}

// The bucket and the prefix of local files of a kind, below the job's output: "input/train".
struct Destination {
  std::string bucket, prefix;
  std::string uri() const { return "s3://" + bucket + "/" + prefix; }
};
Result<Destination> destination_of(const Json& request, const std::string& kind) {
  const std::string output =
      TRY(string_at(request.at("OutputDataConfig"), "S3OutputPath").in("OutputDataConfig"));
  const std::string name = TRY(string_at(request, "TrainingJobName"));
  if (!output.starts_with("s3://"))
    return must_be("output", "s3://BUCKET/PREFIX: local files are uploaded below it");
  const std::string place = output.substr(5);
  const size_t slash = place.find('/');
  std::string prefix = slash == std::string::npos ? "" : place.substr(slash + 1);
  while (prefix.ends_with('/')) prefix.pop_back();
  return Destination{place.substr(0, slash),
                     (prefix.empty() ? "" : prefix + "/") + name + "/" + kind + "/"};
}

// Sets a hyperparameter in the form of the SDK: its value is JSON, so that texts have quotes.
void set_hyperparameter(Json& request, const std::string& name, const Json& value) {
  set(request, "HyperParameters", name.c_str(), dump(value));
}

// Converts code.entry to script mode: the program, the archive of its sources, and the
// hyperparameters, which become its arguments. Requires: output and name are set.
Result<std::vector<Upload>> add_script(const Json& file, const FileFacts& facts, Json& request) {
  const Json& code = file["code"];
  const std::string entry = TRY(string_at(code, "entry").in("code"));
  for (const char* key : {"command", "arguments"})
    if (file.contains(key))
      return invalid(std::string(key) +
                     " and code.entry exclude each other: [hyperparameters] "
                     "become arguments of the entry");
  std::vector<Upload> uploads;
  std::string program = entry, archive;
  if (!code.contains("directory")) {
    // Like the SDK: without a directory, the script alone.
    const auto to = TRY(destination_of(request, "source"));
    program = entry.substr(entry.rfind('/') + 1);
    uploads.push_back({kCodeChannel, local_path(entry), to.bucket, to.prefix, program});
    archive = to.uri() + kSourceArchive;
  } else if (const std::string directory = TRY(directory_of(code)); is_local(directory)) {
    const auto to = TRY(destination_of(request, "source"));
    while (program.starts_with("./")) program.erase(0, 2);
    uploads.push_back({kCodeChannel, local_path(directory), to.bucket, to.prefix, program});
    archive = to.uri() + kSourceArchive;
  } else {
    if (!directory.ends_with(".tar.gz"))
      return must_be("code.directory", "an archive, s3://BUCKET/KEY.tar.gz, when it has an entry");
    archive = directory;
  }
  if (program.empty() || program.starts_with('/') || program.starts_with("../"))
    return must_be("code.entry", "the path of a script below code.directory");
  set_hyperparameter(request, "sagemaker_program", program);
  set_hyperparameter(request, "sagemaker_submit_directory", archive);
  set_hyperparameter(request, "sagemaker_container_log_level", kContainerLogLevel);
  set_hyperparameter(request, "sagemaker_region", facts.region);
  if (file.contains("hyperparameters"))
    for (const auto& [name, value] : file["hyperparameters"].items())
      set_hyperparameter(request, name, value);
  return uploads;
}

// Replaces local channels by uploads below the job's output.
Result<std::vector<Upload>> extract_uploads(Json& request) {
  std::vector<Upload> uploads;
  if (!request.contains("InputDataConfig") || !request["InputDataConfig"].is_array())
    return uploads;
  for (Json& channel : request["InputDataConfig"]) {
    if (!channel.is_object() || !channel.contains("DataSource") ||
        !channel["DataSource"].is_object() || !channel["DataSource"].contains("S3DataSource"))
      continue;
    Json& source = channel["DataSource"]["S3DataSource"];
    const auto uri = string_at(source, "S3Uri");
    if (!uri || !is_local(*uri)) continue;
    const std::string name = TRY(string_at(channel, "ChannelName"));
    const auto to = TRY(destination_of(request, "input/" + name));
    uploads.push_back({name, local_path(*uri), to.bucket, to.prefix});
    source["S3Uri"] = to.uri();
  }
  return uploads;
}

Result<void> add_short_form(const Json& file, const FileFacts& facts, Json& request) {
  const auto copy = [&](const char* from, const char* place, const char* key) {
    if (file.contains(from)) set(request, place, key, file[from]);
  };
  copy("name", "", "TrainingJobName");
  copy("role", "", "RoleArn");
  copy("image", "AlgorithmSpecification", "TrainingImage");
  copy("input_mode", "AlgorithmSpecification", "TrainingInputMode");
  if (file.contains("command"))
    set(request, "AlgorithmSpecification", "ContainerEntrypoint", TRY(command_of(file)));
  if (file.contains("arguments"))
    set(request, "AlgorithmSpecification", "ContainerArguments",
        TRY(strings_of(file, "arguments")));
  if (file.contains("metrics")) {
    Json list = Json::array();
    const Json metrics = TRY(texts_of(file, "metrics"));
    for (const auto& [name, regex] : metrics.items())
      list.push_back({{"Name", name}, {"Regex", regex}});
    set(request, "AlgorithmSpecification", "MetricDefinitions", std::move(list));
  }
  copy("instance_type", "ResourceConfig", "InstanceType");
  copy("instance_count", "ResourceConfig", "InstanceCount");
  copy("volume_gib", "ResourceConfig", "VolumeSizeInGB");
  copy("output", "OutputDataConfig", "S3OutputPath");
  copy("max_runtime_seconds", "StoppingCondition", "MaxRuntimeInSeconds");
  copy("max_wait_seconds", "StoppingCondition", "MaxWaitTimeInSeconds");
  copy("spot", "", "EnableManagedSpotTraining");
  copy("checkpoints", "CheckpointConfig", "S3Uri");
  copy("tensorboard", "TensorBoardOutputConfig", "S3OutputPath");
  if (file.contains("hyperparameters")) {
    Json texts = TRY(texts_of(file, "hyperparameters"));
    if (!has_entry(file)) set(request, "", "HyperParameters", std::move(texts));
  }
  if (file.contains("environment"))
    set(request, "", "Environment", TRY(texts_of(file, "environment")));
  if (file.contains("tags")) {
    Json list = Json::array();
    const Json tags = TRY(texts_of(file, "tags"));
    for (const auto& [key, value] : tags.items()) list.push_back({{"Key", key}, {"Value", value}});
    set(request, "", "Tags", std::move(list));
  }
  TRY(add_channels(file, request));
  TRY(add_code(file, request));

  set(request, "", "TrainingJobName", name_from(facts.name, facts.now));
  set(request, "AlgorithmSpecification", "TrainingInputMode", "File");
  set(request, "OutputDataConfig", "S3OutputPath", "s3://trainyard-" + facts.region + "/jobs");
  if (!request["ResourceConfig"].is_object() ||
      !request["ResourceConfig"].contains("InstanceGroups")) {
    set(request, "ResourceConfig", "InstanceType", "ml.m5.large");
    set(request, "ResourceConfig", "InstanceCount", 1);
  }
  set(request, "ResourceConfig", "VolumeSizeInGB", kVolumeGibDefault);
  set(request, "StoppingCondition", "MaxRuntimeInSeconds", kMaxRuntimeSecondsDefault);
  return {};
}

}  // namespace

Result<Json> json_of_toml(const std::string& text, const std::string& name) {
  std::istringstream stream(text);
  try {
    return to_json(toml::parse(stream, name), 0);
  } catch (const std::exception& fault) {
    return invalid(std::string("not TOML: ") + fault.what());
  }
}

Result<Submission> read_submission(const std::string& text, const FileFacts& facts,
                                   const std::string& name_given) {
  const Json file =
      trim(text).starts_with('{') ? TRY(parse_json(text)) : TRY(json_of_toml(text, facts.name));
  if (!file.is_object()) return invalid(facts.name + " is not a JSON object or a TOML document");
  TRY(check_keys(file));
  Submission submission;
  submission.request = Json::object();
  for (const auto& [key, value] : file.items())
    if (key[0] >= 'A' && key[0] <= 'Z') submission.request[key] = value;
  if (!name_given.empty()) submission.request["TrainingJobName"] = name_given;
  TRY(add_short_form(file, facts, submission.request));
  submission.uploads = TRY(extract_uploads(submission.request));
  if (has_entry(file))
    for (Upload& upload : TRY(add_script(file, facts, submission.request)))
      submission.uploads.push_back(std::move(upload));
  return submission;
}

}  // namespace trainyard::cli
