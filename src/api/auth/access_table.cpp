#include "auth/access_table.hpp"

#include <algorithm>

#include "auth/cloudwatch_accesses.hpp"
#include "auth/fsx_accesses.hpp"
#include "auth/iam_accesses.hpp"
#include "auth/job_policy.hpp"
#include "auth/logs_accesses.hpp"
#include "auth/logs_rows.hpp"
#include "auth/member_texts.hpp"
#include "auth/notify_accesses.hpp"
#include "auth/request_tags.hpp"
#include "base/check.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "batch/arn.hpp"
#include "domain/job.hpp"
#include "objects/objects.hpp"

namespace trainyard::api {
namespace {

using shapes::Member;
using shapes::Shape;
using shapes::ShapeKind;

constexpr std::string_view kJob =
    "arn:aws:sagemaker:{region}:{account}:training-job/{TrainingJobName}";
constexpr std::string_view kBucket = "arn:aws:s3:::{Bucket}",
                           kObject = "arn:aws:s3:::{Bucket}/{Key}";
constexpr const char* kS3Objects = "arn:aws:s3:::";
constexpr std::string_view kCampaignOfDefinition = "campaign of a definition";  // campaign_arn()
constexpr std::string_view kTagged = "tagged resources of EC2";                 // add_tagged()
constexpr std::string_view kVpc = "arn:aws:ec2:{region}:{account}:vpc/{VpcId}",
                           kSubnet = "arn:aws:ec2:{region}:{account}:subnet/{SubnetId}";
constexpr std::string_view kAll = "*";
constexpr std::string_view kRule = "arn:aws:events:{region}:{account}:rule/{Name}";
constexpr std::string_view kAlarm =
    "arn:{partition}:cloudwatch:{region}:{account}:alarm:{AlarmName}";
constexpr std::string_view kFileSystem =
    "arn:aws:fsx:{region}:{account}:file-system/{FileSystemId}";

// Actions and resource types come from AWS's Service Authorization Reference. Where AWS accepts
// only "*" for a request that names resources (DescribeJobs of Batch), the table has the resources:
// a policy for "*" covers them.
constexpr AccessRow kRows[] = {
    {"sagemaker", "CreateTrainingJob DescribeTrainingJob StopTrainingJob UpdateTrainingJob", "",
     kJob},
    {"sagemaker", "ListTrainingJobs", "", kAll},
    {"sagemaker", "AddTags ListTags DeleteTags", "", "{ResourceArn}"},

    {"s3", "ListBuckets", "s3:ListAllMyBuckets", kAll},
    {"s3", "CreateBucket DeleteBucket GetBucketLocation", "", kBucket},
    {"s3", "PutBucketPolicy GetBucketPolicy DeleteBucketPolicy GetBucketPolicyStatus", "", kBucket},
    {"s3",
     "GetBucketAcl PutBucketAcl GetBucketVersioning GetBucketTagging GetBucketLogging "
     "GetBucketOwnershipControls GetBucketRequestPayment GetBucketWebsite",
     "", kBucket},
    {"s3", "PutBucketTagging DeleteBucketTagging", "s3:PutBucketTagging", kBucket},
    {"s3",
     "PutBucketLogging PutBucketOwnershipControls PutBucketRequestPayment PutBucketWebsite "
     "DeleteBucketWebsite",
     "", kBucket},
    {"s3", "DeleteBucketOwnershipControls", "s3:PutBucketOwnershipControls", kBucket},
    {"s3", "GetBucketCors", "s3:GetBucketCORS", kBucket},
    {"s3", "PutBucketCors DeleteBucketCors", "s3:PutBucketCORS", kBucket},
    {"s3", "PutBucketEncryption DeleteBucketEncryption", "s3:PutEncryptionConfiguration", kBucket},
    {"s3", "PutBucketLifecycleConfiguration DeleteBucketLifecycle", "s3:PutLifecycleConfiguration",
     kBucket},
    {"s3", "PutBucketNotificationConfiguration", "s3:PutBucketNotification", kBucket},
    {"s3", "PutBucketAccelerateConfiguration", "s3:PutAccelerateConfiguration", kBucket},
    {"s3", "PutPublicAccessBlock DeletePublicAccessBlock", "s3:PutBucketPublicAccessBlock",
     kBucket},
    {"s3", "GetBucketEncryption", "s3:GetEncryptionConfiguration", kBucket},
    {"s3", "GetBucketLifecycleConfiguration", "s3:GetLifecycleConfiguration", kBucket},
    {"s3", "GetBucketNotificationConfiguration", "s3:GetBucketNotification", kBucket},
    {"s3", "GetBucketReplication", "s3:GetReplicationConfiguration", kBucket},
    {"s3", "GetBucketAccelerateConfiguration", "s3:GetAccelerateConfiguration", kBucket},
    {"s3", "GetPublicAccessBlock", "s3:GetBucketPublicAccessBlock", kBucket},
    {"s3", "GetObjectLockConfiguration", "s3:GetBucketObjectLockConfiguration", kBucket},
    {"s3", "HeadBucket ListObjects ListObjectsV2", "s3:ListBucket", kBucket},
    {"s3", "ListObjectVersions", "s3:ListBucketVersions", kBucket},
    {"s3", "ListMultipartUploads", "s3:ListBucketMultipartUploads", kBucket},
    {"s3", "GetObject HeadObject GetObjectAttributes", "s3:GetObject", kObject},
    {"s3",
     "GetObjectAttributes GetObjectAcl PutObjectAcl GetObjectTagging PutObjectTagging "
     "DeleteObjectTagging GetObjectLegalHold GetObjectRetention",
     "", kObject},
    {"s3",
     "PutObject CopyObject CreateMultipartUpload UploadPart UploadPartCopy CompleteMultipartUpload",
     "s3:PutObject", kObject},
    {"s3", "CopyObject UploadPartCopy", "s3:GetObject", "arn:aws:s3:::{CopySource}"},
    {"s3", "DeleteObject", "", kObject},
    {"s3", "DeleteObjects", "s3:DeleteObject", "arn:aws:s3:::{Bucket}/{Delete.Objects[].Key}"},
    {"s3", "AbortMultipartUpload", "", kObject},
    {"s3", "ListParts", "s3:ListMultipartUploadParts", kObject},

    {"cloudwatch", "PutMetricData GetMetricStatistics GetMetricData ListMetrics", "", kAll},
    {"cloudwatch", "PutMetricAlarm PutCompositeAlarm SetAlarmState", "", kAlarm},
    {"cloudwatch", "DeleteAlarms EnableAlarmActions DisableAlarmActions", "",
     "arn:{partition}:cloudwatch:{region}:{account}:alarm:{AlarmNames[]}"},
    // As on AWS, a list is authorised for all alarms, or for one by its name.
    {"cloudwatch", "DescribeAlarms DescribeAlarmsForMetric", "",
     "arn:{partition}:cloudwatch:{region}:{account}:alarm:*"},
    {"cloudwatch", "DescribeAlarmHistory", "",
     "arn:{partition}:cloudwatch:{region}:{account}:alarm:{AlarmName?}"},
    {"cloudwatch", "PutDashboard GetDashboard", "",
     "arn:{partition}:cloudwatch::{account}:dashboard/{DashboardName}"},
    {"cloudwatch", "DeleteDashboards", "",
     "arn:{partition}:cloudwatch::{account}:dashboard/{DashboardNames[]}"},
    {"cloudwatch", "ListDashboards", "", "arn:{partition}:cloudwatch::{account}:dashboard/*"},
    {"cloudwatch", "PutInsightRule GetInsightRuleReport", "",
     "arn:{partition}:cloudwatch:{region}:{account}:insight-rule/{RuleName}"},
    {"cloudwatch", "DeleteInsightRules EnableInsightRules DisableInsightRules", "",
     "arn:{partition}:cloudwatch:{region}:{account}:insight-rule/{RuleNames[]}"},
    {"cloudwatch", "DescribeInsightRules", "", kAll},
    {"cloudwatch", "TagResource UntagResource ListTagsForResource", "", "{ResourceARN}"},

    {"batch", "CreateComputeEnvironment", "", "{computeEnvironmentName=compute-environment}"},
    {"batch", "UpdateComputeEnvironment DeleteComputeEnvironment", "",
     "{computeEnvironment=compute-environment}"},
    {"batch", "CreateJobQueue", "", "{jobQueueName=job-queue}"},
    {"batch", "UpdateJobQueue DeleteJobQueue GetJobQueueSnapshot", "", "{jobQueue=job-queue}"},
    // As on AWS: a queue uses the capacity of its environments.
    {"batch", "CreateJobQueue UpdateJobQueue", "",
     "{computeEnvironmentOrder[].computeEnvironment=compute-environment}"},
    {"batch", "CreateJobQueue UpdateJobQueue", "",
     "{serviceEnvironmentOrder[].serviceEnvironment=service-environment}"},
    {"batch", "CreateJobQueue UpdateJobQueue", "", "{schedulingPolicyArn=scheduling-policy}"},
    {"batch", "RegisterJobDefinition", "", "{jobDefinitionName=job-definition}"},
    {"batch", "DeregisterJobDefinition", "", "{jobDefinition=job-definition}"},
    // Authorised by definition, since definitions contain environments and commands.
    {"batch", "DescribeJobDefinitions", "", "{jobDefinitions[]=job-definition}"},
    {"batch", "DescribeJobDefinitions", "", "{jobDefinitionName=job-definition}"},
    {"batch", "SubmitJob", "", "{jobDefinition=job-definition}"},
    {"batch", "SubmitJob SubmitServiceJob", "", "{jobQueue=job-queue}"},
    {"batch", "DescribeJobs", "", "{jobs[]=job}"},
    {"batch", "CancelJob TerminateJob", "", "{jobId=job}"},
    {"batch", "CancelJobs", "batch:CancelJob", "{jobs[]=job}"},
    {"batch", "TerminateJobs", "batch:TerminateJob", "{jobs[]=job}"},
    {"batch", "DescribeServiceJob UpdateServiceJob TerminateServiceJob", "", "{jobId=service-job}"},
    {"batch", "TerminateServiceJobs", "batch:TerminateServiceJob", "{jobs[]=service-job}"},
    {"batch",
     "DescribeComputeEnvironments DescribeJobQueues ListJobs ListServiceJobs "
     "ListSchedulingPolicies ListConsumableResources ListQuotaShares DescribeServiceEnvironments",
     "", kAll},
    {"batch", "CreateSchedulingPolicy", "", "{name=scheduling-policy}"},
    {"batch", "DescribeSchedulingPolicies", "", "{arns[]}"},
    {"batch", "UpdateSchedulingPolicy DeleteSchedulingPolicy", "", "{arn}"},
    {"batch", "CreateConsumableResource", "", "{consumableResourceName=consumable-resource}"},
    {"batch",
     "DescribeConsumableResource UpdateConsumableResource DeleteConsumableResource "
     "ListJobsByConsumableResource",
     "", "{consumableResource=consumable-resource}"},
    {"batch", "CreateQuotaShare", "", "{jobQueue=job-queue}"},
    {"batch", "DescribeQuotaShare UpdateQuotaShare DeleteQuotaShare", "", "{quotaShareArn}"},
    {"batch", "CreateServiceEnvironment", "", "{serviceEnvironmentName=service-environment}"},
    {"batch", "UpdateServiceEnvironment DeleteServiceEnvironment", "",
     "{serviceEnvironment=service-environment}"},
    {"batch", "TagResource UntagResource ListTagsForResource", "", "{resourceArn}"},

    {"service-quotas",
     "ListServices ListServiceQuotas GetServiceQuota ListAWSDefaultServiceQuotas "
     "GetAWSDefaultServiceQuota "
     "GetRequestedServiceQuotaChange ListRequestedServiceQuotaChangeHistory "
     "ListRequestedServiceQuotaChangeHistoryByQuota",
     "", kAll},
    {"service-quotas", "RequestServiceQuotaIncrease", "",
     "arn:aws:servicequotas:{region}:{account}:{ServiceCode}/{QuotaCode}"},

    {"cloudtrail", "LookupEvents", "", kAll},

    {"fsx", "CreateFileSystem", "", "arn:aws:fsx:{region}:{account}:file-system/*"},
    {"fsx", "DescribeFileSystems", "",
     "arn:aws:fsx:{region}:{account}:file-system/{FileSystemIds[]}"},
    {"fsx",
     "UpdateFileSystem DeleteFileSystem CreateDataRepositoryAssociation CreateDataRepositoryTask",
     "", kFileSystem},
    // The request has no id of the file system, which the ARN of an association contains.
    {"fsx", "DescribeDataRepositoryAssociations", "",
     "arn:aws:fsx:{region}:{account}:association/*/{AssociationIds[]}"},
    {"fsx", "UpdateDataRepositoryAssociation DeleteDataRepositoryAssociation", "",
     "arn:aws:fsx:{region}:{account}:association/*/{AssociationId}"},
    {"fsx", "DescribeDataRepositoryTasks", "", "arn:aws:fsx:{region}:{account}:task/{TaskIds[]}"},
    {"fsx", "CancelDataRepositoryTask", "", "arn:aws:fsx:{region}:{account}:task/{TaskId}"},
    {"fsx", "TagResource UntagResource ListTagsForResource", "", "{ResourceARN}"},

    {"sns", "CreateTopic", "", "arn:aws:sns:{region}:{account}:{Name}"},
    {"sns",
     "DeleteTopic GetTopicAttributes SetTopicAttributes Subscribe ConfirmSubscription "
     "ListSubscriptionsByTopic Publish",
     "", "{TopicArn}"},
    {"sns", "Publish", "", "{TargetArn}"},
    {"sns", "PublishBatch", "sns:Publish", "{TopicArn}"},
    // The ARN of a subscription begins with that of its topic.
    {"sns", "Unsubscribe GetSubscriptionAttributes SetSubscriptionAttributes", "",
     "{SubscriptionArn}"},
    {"sns", "ListTopics ListSubscriptions", "", kAll},
    {"sns", "TagResource UntagResource ListTagsForResource", "", "{ResourceArn}"},

    {"events", "PutRule DeleteRule DescribeRule EnableRule DisableRule", "", kRule},
    {"events", "PutTargets RemoveTargets ListTargetsByRule", "",
     "arn:aws:events:{region}:{account}:rule/{Rule}"},
    {"events", "PutEvents DescribeEventBus", "",
     "arn:aws:events:{region}:{account}:event-bus/default"},
    {"events", "ListRules ListRuleNamesByTarget ListEventBuses TestEventPattern", "", kAll},
    {"events", "TagResource UntagResource ListTagsForResource", "", "{ResourceARN}"},

    // The id of a new resource is not known yet, so its ARN ends with '*'.
    {"ec2", "CreateVpc CreateDefaultVpc", "", "arn:aws:ec2:{region}:{account}:vpc/*"},
    {"ec2", "DeleteVpc ModifyVpcAttribute DescribeVpcAttribute", "", kVpc},
    {"ec2", "CreateSubnet", "", "arn:aws:ec2:{region}:{account}:subnet/*"},
    {"ec2", "CreateSubnet CreateSecurityGroup CreateRouteTable", "", kVpc},
    {"ec2", "DeleteSubnet ModifySubnetAttribute", "", kSubnet},
    {"ec2", "CreateSecurityGroup", "", "arn:aws:ec2:{region}:{account}:security-group/*"},
    {"ec2",
     "DeleteSecurityGroup AuthorizeSecurityGroupIngress AuthorizeSecurityGroupEgress "
     "RevokeSecurityGroupIngress RevokeSecurityGroupEgress",
     "", "arn:aws:ec2:{region}:{account}:security-group/{GroupId}"},
    {"ec2", "CreateInternetGateway", "", "arn:aws:ec2:{region}:{account}:internet-gateway/*"},
    {"ec2", "AttachInternetGateway DetachInternetGateway DeleteInternetGateway", "",
     "arn:aws:ec2:{region}:{account}:internet-gateway/{InternetGatewayId}"},
    {"ec2", "AttachInternetGateway DetachInternetGateway", "", kVpc},
    {"ec2", "CreateRouteTable", "", "arn:aws:ec2:{region}:{account}:route-table/*"},
    {"ec2", "DeleteRouteTable CreateRoute DeleteRoute AssociateRouteTable", "",
     "arn:aws:ec2:{region}:{account}:route-table/{RouteTableId}"},
    {"ec2", "AssociateRouteTable", "", kSubnet},
    // The request has the id of an association, which no ARN contains.
    {"ec2", "DisassociateRouteTable", "", "arn:aws:ec2:{region}:{account}:route-table/*"},
    {"ec2", "CreateTags DeleteTags", "", kTagged},
    {"ec2",
     "DescribeVpcs DescribeSubnets DescribeSecurityGroups DescribeSecurityGroupRules "
     "DescribeInternetGateways DescribeRouteTables DescribeTags DescribeAvailabilityZones "
     "DescribeRegions DescribeAccountAttributes DescribeInstances DescribeInstanceTypes "
     "DescribeInstanceTypeOfferings DescribeSpotPriceHistory",
     "", kAll},

    {"sts", "GetCallerIdentity", "", ""},
    {"sts", "AssumeRole", "", "{RoleArn}"},

    {"trainyard",
     "ListJobs GetCostReport GetTimeReport ListCampaigns QueryCatalogue ChangeCatalogue "
     "DescribeRegion DescribeServer ListMachines ListEvents CreateConsoleSession ListJobTemplates",
     "", kAll},
    // The operation names only those jobs that the caller may describe.
    {"trainyard", "ReplayJobs", "", kAll},
    // The operation also checks the permissions of the request that is previewed.
    {"trainyard", "PreviewJob", "", kAll},
    {"trainyard", "PutJobTemplate DeleteJobTemplate", "",
     "arn:aws:trainyard:{region}:{account}:job-template/{TemplateName}"},
    {"trainyard", "DescribeJob DescribeJobTime ExplainJob GetJobTimeline KillJob", "",
     "arn:aws:trainyard:{region}:{account}:job/{JobName}"},
    {"trainyard", "InterruptTrainingJob", "", kJob},
    {"trainyard", "DescribeCampaign StopCampaign", "",
     "arn:aws:trainyard:{region}:{account}:campaign/{CampaignName}"},
    // The requests of a campaign are authorised one by one, with the rights of the principal that
    // started it.
    {"trainyard", "CreateCampaign", "", kCampaignOfDefinition},
};

// The prefix of a service's actions: botocore's name of the service, with one exception.
std::string_view prefix_of(std::string_view service) {
  return service == "service-quotas" ? "servicequotas" : service;
}

// -- templates

std::string batch_arn_of(const Context& context, std::string_view kind, const std::string& name) {
  return trainyard::batch::arn_of(context.principal.account, context.region, kind,
                                  std::string(trainyard::batch::name_in_arn(name, kind)));
}

// The object that CopyObject reads: "/bucket/a%20b?versionId=null" -> "bucket/a b".
std::string copied_object(std::string_view source) {
  source = source.substr(0, source.find('?'));
  if (source.starts_with('/')) source.remove_prefix(1);
  auto decoded = percent_decode(source);
  return decoded ? *decoded : std::string(source);
}

// The values of a placeholder.
std::vector<std::string> values_of(const Context& context, std::string_view placeholder,
                                   const Shape* shape, const void* input) {
  if (placeholder == "region") return {context.region};
  if (placeholder == "partition") return {std::string(partition_of(context.region))};
  if (placeholder == "account") return {context.principal.account};
  const bool optional = placeholder.ends_with('?');
  if (optional) placeholder.remove_suffix(1);
  const size_t equals = placeholder.find('=');
  auto texts = texts_at(shape, input, placeholder.substr(0, equals));
  if (texts.empty() && optional) return {""};
  for (std::string& text : texts) {
    if (placeholder == "CopySource") text = copied_object(text);
    if (equals != std::string_view::npos)
      text = batch_arn_of(context, placeholder.substr(equals + 1), text);
  }
  return texts;
}

// Returns the resources of a template: none if a member is absent.
std::vector<std::string> expand(const Context& context, std::string_view text, const Shape* shape,
                                const void* input) {
  std::vector<std::string> out{""};
  while (!text.empty()) {
    const size_t open = std::min(text.find('{'), text.size());
    for (std::string& each : out) each.append(text.substr(0, open));
    text.remove_prefix(open);
    if (text.empty()) break;
    const size_t close = text.find('}');
    CHECK(close != std::string_view::npos, "each placeholder of the table is closed");
    const auto values = values_of(context, text.substr(1, close - 1), shape, input);
    std::vector<std::string> longer;
    longer.reserve(out.size() * values.size());
    for (const std::string& each : out)
      for (const std::string& value : values) longer.push_back(each + value);
    out = std::move(longer);
    text.remove_prefix(close + 1);
  }
  return out;
}

// -- resources and values that no template can express

// Adds the resources that a request tags by id. The prefix of an id determines the type.
void add_tagged(const Context& context, std::string_view action, const Shape& shape,
                const void* input, Accesses& out) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"vpc-", "vpc"},
      {"subnet-", "subnet"},
      {"sg-", "security-group"},
      {"sgr-", "security-group-rule"},
      {"igw-", "internet-gateway"},
      {"rtb-", "route-table"}};
  for (const std::string& id : texts_at(&shape, input, "Resources[]")) {
    const auto type =
        std::ranges::find_if(kTypes, [&](const auto& each) { return id.starts_with(each.first); });
    out.all.push_back({std::string(action), type == std::end(kTypes)
                                                ? std::string(kAll)
                                                : "arn:aws:ec2:" + context.region + ":" +
                                                      context.principal.account + ":" +
                                                      std::string(type->second) + "/" + id});
  }
}

// Returns the ARN of a definition's campaign. For a definition without a name, which the operation
// rejects, it is the ARN of all campaigns.
std::string campaign_arn(const Context& context, const Shape& shape, const void* input) {
  const auto json = parse_json(member_text(shape, input, "Definition"));
  const auto name =
      json && json->is_object() ? string_at(*json, "name") : Result<std::string>(invalid(""));
  return "arn:aws:trainyard:" + context.region + ":" + context.principal.account + ":campaign/" +
         (name ? *name : "*");
}

void pass_role(std::string arn, std::string_view service, Accesses& out) {
  if (arn.empty()) return;
  out.all.push_back({"iam:PassRole", arn});
  out.roles.push_back({std::move(arn), service});
}

// Appends an S3 URI as a pattern: "bucket/key" and `rest`.
void add_place(std::string_view uri, std::string_view rest, std::vector<std::string>& places) {
  const auto location = objects::parse_s3_uri(uri);
  if (location) places.push_back(location->bucket + "/" + location->key + std::string(rest));
}

// Adds what CreateTrainingJob needs. `job`: its request, or the payload of SubmitServiceJob, as
// JSON.
void add_training_job(const Json& job, Accesses& out) {
  const auto part = [](const Json& at, const char* name) -> const Json& {
    static const Json none;
    if (!at.is_object()) return none;
    const auto found = at.find(name);
    return found == at.end() ? none : *found;
  };
  pass_role(string_or(job, "RoleArn"), "sagemaker.amazonaws.com", out);
  const Json& resources = part(job, "ResourceConfig");
  std::vector<std::string> types{string_or(resources, "InstanceType")};
  for (const Json& group : part(resources, "InstanceGroups"))
    types.push_back(string_or(group, "InstanceType"));
  for (const Json& each : part(resources, "InstancePreferences"))
    types.push_back(string_or(each, "InstanceType"));
  set(out.values, "sagemaker:InstanceTypes", std::move(types));
  for (const auto& [name, key] :
       {std::pair{"EnableNetworkIsolation", "sagemaker:NetworkIsolation"},
        {"EnableInterContainerTrafficEncryption", "sagemaker:InterContainerTrafficEncryption"}})
    set(out.values, key, {part(job, name) == Json(true) ? "true" : "false"});
  for (const Json& channel : part(job, "InputDataConfig")) {
    const Json& shared = part(part(channel, "DataSource"), "FileSystemDataSource");
    if (string_or(shared, "FileSystemType") == "FSxLustre")
      out.file_systems.push_back(string_or(shared, "FileSystemId"));
    const Json& source = part(part(channel, "DataSource"), "S3DataSource");
    const auto location = objects::parse_s3_uri(string_or(source, "S3Uri"));
    if (!location) continue;
    const bool manifest = string_or(source, "S3DataType").ends_with("ManifestFile");
    out.reads.push_back(location->bucket + "/" + (manifest ? "*" : location->key + "*"));
  }
  const Json& hyper = part(job, "HyperParameters");
  std::string code = string_or(hyper, "sagemaker_submit_directory");
  if (code.starts_with('"') && code.ends_with('"') && code.size() > 1)
    code = code.substr(1, code.size() - 2);
  add_place(code, "", out.reads);
  add_place(string_or(part(job, "Environment"), "SAGEMAKER_SUBMIT_DIRECTORY"), "", out.reads);
  const auto writes = [&](std::string uri) {
    while (uri.ends_with('/')) uri.pop_back();
    add_place(uri + "/", "*", out.writes);
  };
  writes(own_output(string_or(part(job, "OutputDataConfig"), "S3OutputPath"),
                    string_or(job, "TrainingJobName")));
  if (const std::string uri = string_or(part(job, "CheckpointConfig"), "S3Uri"); !uri.empty())
    writes(uri);
  if (const std::string uri = string_or(part(job, "TensorBoardOutputConfig"), "S3OutputPath");
      !uri.empty())
    writes(domain::tensorboard_uri(uri, string_or(job, "TrainingJobName")));
}

// Adds the log groups that the containers of a definition name, since the server writes the logs of
// jobs with its own rights.
void add_log_groups(const Context& context, const Json& at, Accesses& out) {
  if (at.is_array())
    for (const Json& each : at) add_log_groups(context, each, out);
  if (!at.is_object()) return;
  for (const auto& [name, value] : at.items()) {
    if (name != "logConfiguration" || !value.is_object()) {
      add_log_groups(context, value, out);
      continue;
    }
    const auto options = value.find("options");
    if (options == value.end() || !options->is_object()) continue;
    const std::string group = options->value("awslogs-group", "");
    if (group.empty() || group == trainyard::batch::kLogGroup) continue;
    for (const char* action : {"logs:CreateLogStream", "logs:PutLogEvents"})
      out.all.push_back({action, "arn:aws:logs:" + context.region + ":" +
                                     context.principal.account + ":log-group:" + group +
                                     ":log-stream:" + options->value("awslogs-stream-prefix", "") +
                                     "/*"});
  }
}

// The members of Batch's requests that name roles of containers.
constexpr const char* kBatchRoles[] = {
    "containerProperties.jobRoleArn",
    "containerProperties.executionRoleArn",
    "nodeProperties.nodeRangeProperties[].container.jobRoleArn",
    "nodeProperties.nodeRangeProperties[].container.executionRoleArn",
    "ecsProperties.taskProperties[].taskRoleArn",
    "ecsProperties.taskProperties[].executionRoleArn",
    "nodeProperties.nodeRangeProperties[].ecsProperties.taskProperties[].taskRoleArn",
    "nodeProperties.nodeRangeProperties[].ecsProperties.taskProperties[].executionRoleArn"};

void add_special(const Context& context, const shapes::OperationShape& operation, const void* input,
                 Accesses& out) {
  const std::string_view service = operation.service->name, name = operation.name;
  const Shape& shape = *operation.input;
  const auto texts = [&](std::string_view path) { return texts_at(&shape, input, path); };
  if (service == "s3") {
    set(out.values, "s3:prefix", texts("Prefix"));
    set(out.values, "s3:delimiter", texts("Delimiter"));
    set(out.values, "s3:max-keys", texts("MaxKeys"));
    set(out.values, "s3:x-amz-copy-source", texts("CopySource"));
    set(out.values, "s3:x-amz-acl", texts("ACL"));
    // As on S3, writing an object with tags needs the permission to tag it.
    if (!texts("Tagging").empty() && name != "PutObjectTagging")
      out.all.push_back({"s3:PutObjectTagging", kS3Objects + member_text(shape, input, "Bucket") +
                                                    "/" + member_text(shape, input, "Key")});
  } else if (service == "sagemaker") {
    if (name == "CreateTrainingJob") {
      add_training_job(json_of(shape, input), out);
      // As on AWS, creating a job with tags needs the permission to add tags.
      if (!texts("Tags[].Key").empty())
        out.all.push_back({"sagemaker:AddTags", out.all.front().resource});
    }
    add_tags(texts("Tags[].Key"), texts("Tags[].Value"), out);
    if (name == "DeleteTags") set(out.values, "aws:TagKeys", texts("TagKeys[]"));
  } else if (service == "cloudwatch") {
    add_cloudwatch_accesses(context, operation, input, out);
  } else if (service == "batch") {
    for (const char* path : kBatchRoles)
      for (std::string& arn : texts(path))
        pass_role(std::move(arn), "ecs-tasks.amazonaws.com", out);
    for (std::string& arn : texts("serviceRole"))
      pass_role(std::move(arn), "batch.amazonaws.com", out);
    set(out.values, "batch:ShareIdentifier", texts("shareIdentifier"));
    add_tag_map(shape, input, out);
    if (name == "UntagResource") set(out.values, "aws:TagKeys", texts("tagKeys[]"));
    if (name == "RegisterJobDefinition") add_log_groups(context, json_of(shape, input), out);
    if (name == "SubmitServiceJob") {
      const auto payload = parse_json(member_text(shape, input, "serviceRequestPayload"));
      if (payload) add_training_job(*payload, out);
    }
  } else if (service == "fsx") {
    add_fsx_accesses(operation, input, out);
  } else if (service == "sns" || service == "events") {
    add_notify_accesses(context, operation, input, out);
  } else if (service == "ec2") {
    // As on AWS, creating a resource with tags needs the permission to add tags.
    if (!texts("TagSpecifications[].Tags[].Key").empty())
      out.all.push_back({"ec2:CreateTags", out.all.front().resource});
    add_ec2_tags(shape, input, out);
  } else if (service == "sts" && name == "AssumeRole") {
    set(out.values, "sts:RoleSessionName", texts("RoleSessionName"));
    set(out.values, "sts:ExternalId", texts("ExternalId"));
    set(out.values, "sts:SourceIdentity", texts("SourceIdentity"));
  }
}

}  // namespace

AccessTable::AccessTable() {
  const auto add = [&](const AccessRow& row) {
    for (const auto operation : split(row.operations, ' '))
      if (!operation.empty())
        lines_[{row.service, operation}].push_back({row.action, row.resource});
  };
  std::ranges::for_each(kRows, add);
  std::ranges::for_each(kLogRows, add);
}

const AccessTable& AccessTable::shared() {
  static const AccessTable table;
  return table;
}

bool AccessTable::has(const shapes::OperationShape& operation) const {
  return operation.service->name == "iam" || lines_of(operation) != nullptr;
}

const std::vector<AccessTable::Line>* AccessTable::lines_of(
    const shapes::OperationShape& operation) const {
  const auto found = lines_.find({operation.service->name, operation.name});
  return found == lines_.end() ? nullptr : &found->second;
}

Accesses AccessTable::find(const Context& context, const shapes::OperationShape& operation,
                           const void* input) const {
  Accesses out;
  const std::string_view service = operation.service->name;
  const auto action_of = [&](std::string_view action) {
    return action.empty() ? std::string(prefix_of(service)).append(":").append(operation.name)
                          : std::string(action);
  };
  if (service == "iam") {
    add_iam_accesses(context, operation, input, out);
    return out;
  }
  const std::vector<Line>* lines = lines_of(operation);
  CHECK(lines != nullptr, "the table has a line for the operation");
  bool free = false;
  for (const Line& line : *lines) {
    if (line.resource.empty()) {
      free = true;
      continue;
    }
    if (add_log_accesses(line.resource, action_of(line.action), context, *operation.input, input,
                         out))
      continue;
    if (line.resource == kTagged) {
      add_tagged(context, action_of(""), *operation.input, input, out);
      continue;
    }
    if (line.resource == kCampaignOfDefinition) {
      out.all.push_back({action_of(""), campaign_arn(context, *operation.input, input)});
      continue;
    }
    for (std::string& resource : expand(context, line.resource, operation.input, input))
      out.all.push_back({action_of(line.action), std::move(resource)});
  }
  // A request without a resource (an empty list of jobs) needs the permission for all resources.
  if (out.all.empty() && !free)
    out.all.push_back({action_of(lines->front().action), std::string(kAll)});
  if (operation.input) add_special(context, operation, input, out);
  return out;
}

bool AccessTable::needs_body(const shapes::OperationShape& operation) {
  return operation.name == "DeleteObjects";
}

}  // namespace trainyard::api
