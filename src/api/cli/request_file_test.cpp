#include "cli/request_file.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

const FileFacts kFacts{"My model.toml", "eu-west-1", from_milliseconds(1'763'631'900'000)};

Result<Submission> read(const std::string& text, const std::string& name = "") {
  return read_submission(text, kFacts, name);
}

TEST(ReadSubmission, ExpandsTheShortForm) {
  const auto submission = read(R"T(
name = "mnist"
image = "trainyard/host"
command = ["python3", "train.py"]
instance_type = "ml.m5.large"
instance_count = 2
volume_gib = 5
output = "s3://data/models/"
spot = true
max_wait_seconds = 90000
checkpoints = "s3://data/checkpoints"
tensorboard = "s3://data/board"
role = "arn:aws:iam::123456789012:role/trainer"
[hyperparameters]
epochs = 10
rate = 0.5
name = "x"
[environment]
DEBUG = true
[tags]
project = "digits"
[metrics]
loss = "loss=([0-9.]+)"
[channels]
train = "s3://data/digits"
test = {from = "s3://data/test", sharded = true, content_type = "text/csv"}
)T");
  ASSERT_TRUE(submission) << submission.error().message;
  EXPECT_EQ(submission->request, *parse_json(R"T({
    "TrainingJobName": "mnist", "RoleArn": "arn:aws:iam::123456789012:role/trainer",
    "AlgorithmSpecification": {"TrainingImage": "trainyard/host", "TrainingInputMode": "File",
      "ContainerEntrypoint": ["python3", "train.py"], "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 5},
    "OutputDataConfig": {"S3OutputPath": "s3://data/models/"}, "EnableManagedSpotTraining": true,
    "CheckpointConfig": {"S3Uri": "s3://data/checkpoints"},
    "TensorBoardOutputConfig": {"S3OutputPath": "s3://data/board"},
    "StoppingCondition": {"MaxRuntimeInSeconds": 86400, "MaxWaitTimeInSeconds": 90000},
    "HyperParameters": {"epochs": "10", "rate": "0.5", "name": "x"}, "Environment": {"DEBUG": "true"},
    "Tags": [{"Key": "project", "Value": "digits"}],
    "InputDataConfig": [
      {"ChannelName": "test", "ContentType": "text/csv", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix",
        "S3Uri": "s3://data/test", "S3DataDistributionType": "ShardedByS3Key"}}},
      {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix",
        "S3Uri": "s3://data/digits", "S3DataDistributionType": "FullyReplicated"}}}]})T"));
  EXPECT_TRUE(submission->uploads.empty());
}

TEST(ReadSubmission, ReadsACommandAsWordsProgramOrShellLine) {
  const auto entry_point = [](const std::string& command) {
    return read("image = \"i\"\ncommand = " + command)
        ->request["AlgorithmSpecification"]["ContainerEntrypoint"];
  };
  EXPECT_EQ(entry_point("[\"a b\", \"c\"]"), (Json{"a b", "c"}));
  EXPECT_EQ(entry_point("\"train\""), Json::array({"train"}));
  EXPECT_EQ(entry_point("\"echo hello; nproc\""), (Json{"/bin/sh", "-c", "echo hello; nproc"}));
}

TEST(ReadSubmission, KeepsARequestOfTheApi) {
  const std::string text = R"T({
    "TrainingJobName": "raw", "RoleArn": "r", "AlgorithmSpecification": {"TrainingImage": "i", "TrainingInputMode": "Pipe"},
    "OutputDataConfig": {"S3OutputPath": "s3://b"}, "StoppingCondition": {"MaxRuntimeInSeconds": 1},
    "ResourceConfig": {"InstanceGroups": [], "VolumeSizeInGB": 1}})T";
  EXPECT_EQ(read(text)->request, *parse_json(text));
  EXPECT_EQ(read(text, "given")->request["TrainingJobName"], "given");
}

TEST(ReadSubmission, PrefersKeysOfTheApi) {
  const auto submission =
      read("image = \"short\"\n[AlgorithmSpecification]\nTrainingImage = \"own\"\n");
  EXPECT_EQ(submission->request["AlgorithmSpecification"]["TrainingImage"], "own");
}

TEST(ReadSubmission, SetsDefaults) {
  const auto request = read("image = \"i\"\n")->request;
  EXPECT_EQ(request["TrainingJobName"], "My-model-20251120t094500");
  EXPECT_EQ(request["OutputDataConfig"]["S3OutputPath"], "s3://trainyard-eu-west-1/jobs");
  EXPECT_EQ(request["ResourceConfig"]["InstanceCount"], 1);
}

TEST(ReadSubmission, MakesUploadsOfLocalDirectories) {
  const auto submission = read(R"T(
name = "mnist"
output = "s3://data/models/"
[channels]
train = "./data"
test = "file:///srv/test"
[code]
directory = "../src"
)T");
  ASSERT_TRUE(submission);
  ASSERT_EQ(submission->uploads.size(), 3u);
  const Upload& test = submission->uploads[0];
  EXPECT_EQ(test.path, "/srv/test");
  EXPECT_EQ(test.bucket, "data");
  EXPECT_EQ(test.prefix, "models/mnist/input/test/");
  EXPECT_EQ(submission->uploads[1].path, "./data");
  EXPECT_EQ(submission->uploads[2].channel, "code");
  const Json& request = submission->request;
  EXPECT_EQ(request["InputDataConfig"][2]["DataSource"]["S3DataSource"]["S3Uri"],
            "s3://data/models/mnist/input/code/");
  EXPECT_EQ(submission->uploads[2].entry, "");
}

TEST(ReadSubmission, RunsAnEntryInScriptMode) {
  const auto submission = read(R"T(
name = "mnist"
output = "s3://data/models/"
code = {directory = "./src", entry = "./bin/train.py"}
[hyperparameters]
epochs = 3
rate = 0.1
shuffle = true
name = "a b"
)T");
  ASSERT_TRUE(submission) << submission.error().message;
  ASSERT_EQ(submission->uploads.size(), 1u);
  const Upload& sources = submission->uploads[0];
  EXPECT_EQ(sources.path, "./src");
  EXPECT_EQ(sources.entry, "bin/train.py");
  EXPECT_EQ("s3://" + sources.bucket + "/" + sources.prefix + kSourceArchive,
            "s3://data/models/mnist/source/sourcedir.tar.gz");
  const Json& request = submission->request;
  EXPECT_EQ(
      request["HyperParameters"],
      (Json{{"sagemaker_program", "\"bin/train.py\""},
            {"sagemaker_submit_directory", "\"s3://data/models/mnist/source/sourcedir.tar.gz\""},
            {"sagemaker_container_log_level", "20"},
            {"sagemaker_region", "\"eu-west-1\""},
            {"epochs", "3"},
            {"rate", "0.1"},
            {"shuffle", "true"},
            {"name", "\"a b\""}}));
  EXPECT_FALSE(request["AlgorithmSpecification"].contains("ContainerEntrypoint"));
  EXPECT_FALSE(request.contains("InputDataConfig"));
}

TEST(ReadSubmission, PacksAnEntryWithoutDirectoryAlone) {
  const auto submission = read("name = \"a\"\ncode = {entry = \"src/train.py\"}");
  ASSERT_TRUE(submission) << submission.error().message;
  EXPECT_EQ(submission->uploads[0].path, "src/train.py");
  EXPECT_EQ(submission->uploads[0].entry, "train.py");
  EXPECT_EQ(submission->request["HyperParameters"]["sagemaker_program"], "\"train.py\"");
}

TEST(ReadSubmission, UsesAnArchiveInABucket) {
  const auto submission = read("code = {directory = \"s3://b/src.tar.gz\", entry = \"train.py\"}");
  ASSERT_TRUE(submission) << submission.error().message;
  EXPECT_TRUE(submission->uploads.empty());
  EXPECT_EQ(submission->request["HyperParameters"]["sagemaker_submit_directory"],
            "\"s3://b/src.tar.gz\"");
}

TEST(ReadSubmission, RejectsInvalidFilesWithAnExplanation) {
  struct Row {
    const char* text;
    const char* part;
  };
  const Row rows[] = {
      {"imgae = \"x\"", "unknown key 'imgae': did you mean image? (short keys: name, image"},
      {"image = ", "not TOML"},
      {"{\"a\"", "not JSON"},
      {"channels = 3", "channels must be a table, [channels]"},
      {"[channels]\ntrain = 3", "channels.train must be a path"},
      {"[hyperparameters]\na = [1]", "hyperparameters.a must be a text or a number"},
      {"command = [1]", "command must be a list of texts"},
      {"[code]\ndirectory = \"src\"", "code.directory must be a path that begins with ./"},
      {"[code]\ndirectory = \"s3://b/src\"\nentry = \"a.py\"", "code.directory must be an archive"},
      {"[code]\ndirectory = \"./src\"\nentry = \"../a.py\"",
       "code.entry must be the path of a script below code.directory"},
      {"command = \"ls\"\n[code]\ndirectory = \"./src\"\nentry = \"a.py\"",
       "command and code.entry exclude each other"},
      {"output = \"./here\"\n[channels]\ntrain = \"./data\"", "output must be s3://BUCKET/PREFIX"},
  };
  for (const Row& row : rows) {
    const auto submission = read(row.text);
    ASSERT_FALSE(submission) << row.text;
    EXPECT_NE(submission.error().message.find(row.part), std::string::npos)
        << submission.error().message;
  }
}

}  // namespace
}  // namespace trainyard::cli
