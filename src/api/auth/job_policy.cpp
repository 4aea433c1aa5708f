#include "auth/job_policy.hpp"

#include <algorithm>

#include "auth/access_table.hpp"
#include "base/check.hpp"
#include "base/json.hpp"
#include "control/control.hpp"
#include "objects/objects.hpp"
#include "reconcile/state.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kStreamsInPolicy = 40;  // some 200 bytes each; a document has at most 10,240

Json allow(Json actions, Json resources, Json conditions = {}) {
  Json statement{
      {"Effect", "Allow"}, {"Action", std::move(actions)}, {"Resource", std::move(resources)}};
  if (!conditions.is_null()) statement["Condition"] = std::move(conditions);
  return statement;
}

// Collects one document for each part of the job: the policy of a job with twenty channels does not
// fit into one.
class Documents {
 public:
  void add(Json statements) {
    const auto parsed = policy::parse_policy(
        dump(Json{{"Version", "2012-10-17"}, {"Statement", std::move(statements)}}),
        policy::PolicyKind::identity);
    // A location that cannot be written in a policy grants nothing.
    if (parsed) all_.push_back(*parsed);
  }
  std::vector<std::shared_ptr<const policy::Policy>> take() { return std::move(all_); }

 private:
  std::vector<std::shared_ptr<const policy::Policy>> all_;
};

std::string object_arn(const objects::Location& location) {
  return "arn:aws:s3:::" + policy_literal(location.bucket) + "/" + policy_literal(location.key);
}

Json list(const objects::Location& location) {
  const std::string bucket = "arn:aws:s3:::" + policy_literal(location.bucket);
  if (location.key.empty()) return allow(Json{"s3:ListBucket"}, bucket);
  return allow(Json{"s3:ListBucket"}, bucket,
               {{"StringLike", {{"s3:prefix", policy_literal(location.key) + "*"}}}});
}

void add_channel(const domain::Channel& channel, Documents& to) {
  auto location = objects::parse_s3_uri(channel.s3_uri);
  if (!location) return;
  if (channel.s3_data_type.ends_with("ManifestFile")) location->key.clear();
  to.add(Json::array({allow(Json{"s3:GetObject"}, object_arn(*location) + "*"), list(*location)}));
}

// Allows reading and writing below a directory.
void add_directory(const std::string& uri, Documents& to) {
  auto location = objects::parse_s3_uri(uri);
  if (!location) return;
  if (!location->key.empty() && !location->key.ends_with('/')) location->key += '/';
  const std::string bucket = "arn:aws:s3:::" + policy_literal(location->bucket);
  to.add(
      Json::array({allow(Json{"s3:GetObject", "s3:PutObject", "s3:DeleteObject",
                              "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"},
                         object_arn(*location) + "*"),
                   list(*location),
                   allow(Json{"s3:ListBucketMultipartUploads"}, bucket,
                         {{"StringLike", {{"s3:prefix", policy_literal(location->key) + "*"}}}})}));
}

void add_logs(const domain::Job& job, Documents& to) {
  const Json actions{"logs:CreateLogStream", "logs:PutLogEvents", "logs:GetLogEvents",
                     "logs:DescribeLogStreams", "logs:FilterLogEvents"};
  const std::string arns = "arn:aws:logs:" + job.key.region + ":" + job.account + ":log-group:";
  if (job.spec.contract == domain::Contract::training) {
    to.add(Json::array({allow(actions, arns + std::string(reconcile::kLogGroup) +
                                           ":log-stream:" + policy_literal(job.key.name) + "/*")}));
    return;
  }
  Json streams = Json::array();
  for (domain::HostIndex host = 0; host < job.spec.hosts(); ++host) {
    streams.push_back(arns + policy_literal(reconcile::log_group_of(job, host)) + ":log-stream:" +
                      policy_literal(reconcile::log_stream_of(job, *job.attempt(), host)));
    if (streams.size() < kStreamsInPolicy && host + 1 < job.spec.hosts()) continue;
    to.add(Json::array({allow(actions, std::move(streams))}));
    streams = Json::array();
  }
}

}  // namespace

std::string policy_literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '$')
      out.append("${").append(1, c).append("}");
    else
      out += c;
  }
  return out;
}

std::string source_archive_of(const domain::JobSpec& spec) {
  const auto find = [](const std::map<std::string, std::string>& in, const char* name) {
    const auto found = in.find(name);
    return found == in.end() ? std::string() : found->second;
  };
  std::string place = find(spec.hyperparameters, "sagemaker_submit_directory");
  // SDKs write hyperparameters as JSON strings.
  if (place.size() > 1 && place.starts_with('"') && place.ends_with('"'))
    place = place.substr(1, place.size() - 2);
  if (place.empty()) place = find(spec.environment, "SAGEMAKER_SUBMIT_DIRECTORY");
  return place.starts_with("s3://") ? place : "";
}

std::string own_output(std::string output_uri, std::string_view job_name) {
  while (output_uri.ends_with('/')) output_uri.pop_back();
  const auto location = objects::parse_s3_uri(output_uri);
  const std::string_view key = location ? std::string_view(location->key) : "";
  if (!key.empty() && key.substr(key.rfind('/') + 1) == job_name) return output_uri;
  return output_uri.append("/").append(job_name);
}

std::vector<std::shared_ptr<const policy::Policy>> job_policies(const domain::Job& job) {
  CHECK(job.attempt() != nullptr, "the job has an attempt");
  Documents documents;
  for (const auto& channel : job.spec.channels) add_channel(channel, documents);
  if (const auto archive = objects::parse_s3_uri(source_archive_of(job.spec)))
    documents.add(Json::array({allow(Json{"s3:GetObject"}, object_arn(*archive))}));
  if (job.spec.contract == domain::Contract::training && !job.spec.output_uri.empty())
    add_directory(own_output(job.spec.output_uri, job.key.name), documents);
  for (const auto* directory : {&job.spec.checkpoint, &job.spec.tensorboard})
    if (*directory) add_directory((*directory)->uri, documents);
  add_logs(job, documents);
  const std::string arn = policy_literal(control::job_arn(job));
  if (job.spec.contract == domain::Contract::plain) {
    documents.add(Json::array({allow(Json{"batch:DescribeJobs"}, arn)}));
  } else {
    documents.add(
        Json::array({allow(Json{"sagemaker:DescribeTrainingJob"}, arn),
                     allow(Json{"cloudwatch:PutMetricData", "cloudwatch:GetMetricStatistics"}, "*",
                           {{"ForAllValues:StringEquals", {{kMetricJobKey, job.key.name}}},
                            {"Null", {{kMetricJobKey, "false"}}}})}));
  }
  return documents.take();
}

}  // namespace trainyard::api
