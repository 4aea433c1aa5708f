#include <gtest/gtest.h>

#include "base/enum_table.hpp"
#include "domain/image.hpp"
#include "domain/instance_type.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {
namespace {

using std::optional;

TEST(Job, IsFoundByItsNumber) {
  std::vector<std::shared_ptr<const Job>> jobs;
  for (const JobNumber number : {2, 5}) {
    Job job;
    job.number = number;
    jobs.push_back(std::make_shared<const Job>(std::move(job)));
  }
  EXPECT_EQ(find_job(jobs, 5), jobs[1].get());
  for (const JobNumber absent : {1, 3, 6}) EXPECT_EQ(find_job(jobs, absent), nullptr) << absent;
}

TEST(JobState, AllowsExactlyTheListedTransitions) {
  using S = JobState;
  const optional<S> no;
  // Columns: place, stop, complete, fail, finish_stopped, retry.
  const optional<S> expected[6][6] = {
      {S::active, S::stopped, no, S::failed, no, no},
      {no, S::stopping, S::completed, S::failed, S::stopped, S::waiting},
      {no, no, S::completed, S::failed, S::stopped, no},
      {no, no, no, no, no, no},
      {no, no, no, no, no, no},
      {no, no, no, no, no, no},
  };
  for (size_t s = 0; s < 6; ++s)
    for (size_t e = 0; e < 6; ++e) {
      const auto found = next(enumerators<JobState>()[s], enumerators<JobEvent>()[e]);
      EXPECT_EQ(bool(found), expected[s][e].has_value()) << s << " " << e;
      if (found)
        EXPECT_EQ(*found, *expected[s][e]) << s << " " << e;
      else
        EXPECT_EQ(found.error().kind, Kind::conflict);
    }
  EXPECT_EQ(next(S::completed, JobEvent::stop).error().message,
            "a job that is completed cannot stop");
}

TEST(AttemptState, AllowsExactlyTheListedTransitions) {
  using S = AttemptState;
  const optional<S> no;
  const optional<S> expected[4][4] = {
      {S::running, S::draining, no, S::ended},
      {no, S::draining, no, S::ended},
      {no, no, S::ended, S::ended},
      {no, no, no, no},
  };
  for (size_t s = 0; s < 4; ++s)
    for (size_t e = 0; e < 4; ++e) {
      const auto found = next(enumerators<S>()[s], enumerators<AttemptEvent>()[e]);
      EXPECT_EQ(bool(found), expected[s][e].has_value()) << s << " " << e;
      if (found)
        EXPECT_EQ(*found, *expected[s][e]) << s << " " << e;
      else
        EXPECT_EQ(found.error().kind, Kind::conflict);
    }
}

TEST(HostState, MovesForwardOnlyAndEndsInFinalStates) {
  using S = HostState;
  for (const S from : enumerators<S>())
    for (const S to : enumerators<S>()) {
      const bool legal = from < S::finished && to > from;
      EXPECT_EQ(bool(next(from, to)), legal) << to_string(from) << " -> " << to_string(to);
    }
}

template <class E>
void expect_texts_round_trip(Result<E> (*parse)(std::string_view)) {
  for (const E each : enumerators<E>()) EXPECT_EQ(*parse(to_string(each)), each) << to_string(each);
  EXPECT_EQ(to_string(static_cast<E>(kEnumerators<E>)), "unknown");
}

TEST(States, NamesRoundTrip) {
  expect_texts_round_trip(parse_job_state);
  expect_texts_round_trip(parse_attempt_state);
  expect_texts_round_trip(parse_host_state);
  expect_texts_round_trip(parse_phase);
  expect_texts_round_trip(parse_stop_cause);
  expect_texts_round_trip(parse_fault);
  expect_texts_round_trip(parse_warm_pool_state);
  expect_texts_round_trip(parse_cancellation);
  EXPECT_EQ(to_string(Fault::lost), "lost");
  EXPECT_FALSE(parse_phase("training"));
  EXPECT_EQ(to_string(Phase::max_runtime_exceeded), "MaxRuntimeExceeded");
}

TEST(AttemptId, HasExactlyOneText) {
  EXPECT_EQ(*parse_attempt_id("j17a1"), (AttemptId{17, 1}));
  for (const char* text : {"", "j", "j17", "17a1", "j17a", "ja1", "j0a1", "j1a0", "j017a1", "j1a1 ",
                           "j-1a1", "j1a9999999999"})
    EXPECT_FALSE(parse_attempt_id(text)) << text;
}

JobSpec a_spec() {
  JobSpec spec;
  spec.image = "oci:/images/a:latest";
  spec.entrypoint = {"/bin/bash"};
  spec.arguments = {"-c", "train"};
  spec.environment = {{"A", "1"}};
  spec.hyperparameters = {{"epochs", "10"}};
  spec.channels = {
      {"train",
       "text/csv",
       InputMode::fast_file,
       "None",
       "RecordIO",
       "S3Prefix",
       "s3://b/p",
       Distribution::sharded_by_s3_key,
       {"image-ref", "label"},
       {"first"},
       7},
      {.name = "shared", .file_system = FileSystemSource{"fs-1", "EFS", "/data", true}}};
  spec.metrics = {{"loss", "loss=([0-9.]+)"}};
  spec.groups = {{"first", "ml.m5.large", 2}, {"second", "ml.c5.xlarge", 1}};
  spec.volume_gib = 30;
  spec.role_arn = "arn:aws:iam::123456789012:role/r";
  spec.output_uri = "s3://b/out";
  spec.output_kms_key = "k";
  spec.max_runtime_seconds = 60;
  spec.compress_model = false;
  spec.spot = true;
  spec.max_wait_seconds = 3600;
  spec.max_pending_seconds = 7200;
  spec.retries_max = 3;
  spec.checkpoint = SyncedDirectory{"s3://b/checkpoints", "/opt/ml/checkpoints"};
  spec.tensorboard = SyncedDirectory{"s3://b/board/digits/tensorboard-output", "/board"};
  spec.keep_alive_seconds = 600;
  spec.network_isolation = true;
  spec.encrypt_traffic = true;
  spec.request = {{"TrainingJobName", "digits"}};
  return spec;
}

Host a_host() {
  Host host;
  host.state = HostState::failed;
  host.machine = "box-1";
  host.share = {0.5, int64_t{3} << 30, 1};
  host.facts_applied = 4;
  host.exit_code = 137;
  host.failure = "no";
  host.fault = Fault::algorithm;
  host.staged_model = "k";
  host.stopped = StopCause::interrupted;
  host.state_since = from_milliseconds(1700);
  host.steps = {{HostState::placed, from_milliseconds(1100)},
                {HostState::running, from_milliseconds(1200)},
                {HostState::failed, from_milliseconds(1700)}};
  return host;
}

Attempt an_attempt() {
  Attempt attempt;
  attempt.token = "t";
  attempt.state = AttemptState::draining;
  attempt.first_failed = 0;
  attempt.interruption = "its machine was taken away";
  attempt.interrupted = from_milliseconds(1800);
  attempt.notice = 5s;
  attempt.warm_pool = 16;
  attempt.started = from_milliseconds(1100);
  attempt.training_started = from_milliseconds(1200);
  attempt.hosts = {a_host(), Host{}};
  return attempt;
}

Job a_job() {
  Job job;
  job.number = 17;
  job.key = {"eu-west-1", "digits"};
  job.account = "123456789012";
  job.spec = a_spec();
  job.state = JobState::stopping;
  job.created = from_milliseconds(1000);
  job.modified = from_milliseconds(2000);
  job.transitions = {{Phase::starting, "m", from_milliseconds(1000), from_milliseconds(1500)},
                     {Phase::training, "n", from_milliseconds(1500), {}}};
  job.note = "note";
  job.stop_requested = from_milliseconds(1900);
  job.stop_cause = StopCause::user;
  job.attempts = {an_attempt()};
  job.failure_reason = "AlgorithmError: no";
  job.model_uri = "s3://b/out/model.tar.gz";
  job.output_uri = "s3://b/out/output.tar.gz";
  job.training_start = from_milliseconds(1200);
  job.warm_pool = WarmPool{WarmPoolState::reused, 600, from_milliseconds(1300),
                           from_milliseconds(1400), "next"};
  return job;
}

TEST(Job, JsonRoundTrips) {
  const Json json = to_json(a_job());
  const auto again = job_from_json(json);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(dump(to_json(*again)), dump(json));
  EXPECT_EQ(again->spec.channels[0].distribution, Distribution::sharded_by_s3_key);
  EXPECT_EQ(again->spec.channels[0].shuffle_seed, 7);
  EXPECT_TRUE(again->spec.channels[1].file_system->writable);
  EXPECT_EQ(again->spec.checkpoint->path, "/opt/ml/checkpoints");
  EXPECT_EQ(again->spec.tensorboard->uri, "s3://b/board/digits/tensorboard-output");
  EXPECT_EQ(again->spec.tensorboard->path, "/board");
  EXPECT_EQ(again->spec.max_wait_seconds, 3600);
  EXPECT_EQ(again->attempts[0].interruption, "its machine was taken away");
  EXPECT_EQ(again->attempts[0].notice, 5s);
  EXPECT_EQ(again->warm_pool->reused_by, "next");
  EXPECT_EQ(again->attempts[0].hosts[0].exit_code, 137);
  ASSERT_EQ(again->attempts[0].hosts[0].steps.size(), 3u);
  EXPECT_EQ(again->attempts[0].hosts[0].steps[1].state, HostState::running);
  EXPECT_EQ(again->attempts[0].hosts[0].steps[1].at, from_milliseconds(1200));
  EXPECT_EQ(dump(json["attempts"][0]["hosts"][0]["steps"]),
            R"({"failed":1700,"placed":1100,"running":1200})");
  EXPECT_FALSE(again->training_end);
}

TEST(Job, UseSelectedMakesThePreferenceTheOnlyGroup) {
  Job job = a_job();
  job.spec.groups = {{"homogeneousCluster", "ml.p4d.24xlarge", 1}};
  job.spec.preferences = {{"homogeneousCluster", "ml.p4d.24xlarge", 1},
                          {"homogeneousCluster", "ml.g5.xlarge", 8}};
  job.selected = 1;
  job.attempts[0].hosts[0].address = "10.1.0.2";
  const auto read = job_from_json(to_json(job));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->selected, 1u);
  EXPECT_EQ(read->spec.preferences.size(), 2u);
  EXPECT_EQ(read->spec.instance_type(0), "ml.g5.xlarge");
  EXPECT_EQ(read->spec.hosts(), 8u);
  EXPECT_EQ(read->attempts[0].hosts[0].address, "10.1.0.2");
  job.selected = 2;  // as in a damaged record
  EXPECT_EQ(job_from_json(to_json(job))->spec.instance_type(0), "ml.p4d.24xlarge");
  job.selected.reset();
  job.spec.preferences.clear();
  EXPECT_FALSE(to_json(job.spec).contains("preferences"));
  EXPECT_FALSE(progress_json(job).contains("selected"));
}

TEST(Job, MissingMembersTakeTheirDefaults) {
  Json json = to_json(a_job());
  json.erase("note");
  json["spec"].erase("volume_gib");
  json["attempts"][0]["hosts"][0].erase("share");
  const auto job = job_from_json(json);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->spec.volume_gib, 1);
  EXPECT_EQ(job->attempts[0].hosts[0].share.cpus, 0);
}

TEST(Job, ErrorsNameInvalidMembers) {
  Json json = to_json(a_job());
  json["attempts"][0]["hosts"][0]["state"] = "asleep";
  EXPECT_EQ(job_from_json(json).error().message,
            "job.attempts: attempt.hosts: host.state: unknown host state 'asleep'");
  json = to_json(a_job());
  json["attempts"][0]["hosts"][0]["steps"] = {{"placed", "soon"}};
  EXPECT_EQ(job_from_json(json).error().message,
            "job.attempts: attempt.hosts: host.steps: host.steps.placed must be a whole number");
  json = to_json(a_job());
  json["number"] = -1;
  EXPECT_EQ(job_from_json(json).error().message,
            "job.number must be a whole number that is not negative, not -1");
  json = to_json(a_job());
  json["spec"]["groups"] = Json::array();
  EXPECT_FALSE(job_from_json(json));
}

TEST(Job, RanExcludesWaits) {
  Job job = a_job();
  EXPECT_EQ(job.ran(from_milliseconds(1500)), 300ms) << "still running";
  job.attempts[0].ended = from_milliseconds(1400);
  EXPECT_EQ(job.ran(from_milliseconds(9000)), 200ms);
  Attempt second;
  second.started = from_milliseconds(5000);
  job.attempts.push_back(second);
  EXPECT_EQ(job.ran(from_milliseconds(9000)), 200ms) << "training has not started";
  job.attempts[1].training_started = from_milliseconds(6000);
  EXPECT_EQ(job.ran(from_milliseconds(9000)), 3200ms);
}

TEST(JobSpec, SameHostsMatchesJobsThatMayReuseHosts) {
  const JobSpec kept = a_job().spec;
  EXPECT_TRUE(same_hosts(kept, kept));
  const auto other = [&](auto&& change) {
    JobSpec next = kept;
    change(next);
    return same_hosts(kept, next);
  };
  EXPECT_TRUE(other([](JobSpec& next) { next.image = "another"; }));
  EXPECT_TRUE(other([](JobSpec& next) { next.keep_alive_seconds = 0; }));
  EXPECT_FALSE(other([](JobSpec& next) { next.role_arn = "another"; }));
  EXPECT_FALSE(other([](JobSpec& next) { next.groups[0].count = 3; }));
  EXPECT_FALSE(other([](JobSpec& next) { next.groups.pop_back(); }));
  EXPECT_FALSE(other([](JobSpec& next) { next.volume_gib = 31; }));
  EXPECT_FALSE(other([](JobSpec& next) { next.network_isolation = false; }));
  EXPECT_FALSE(other([](JobSpec& next) { next.encrypt_traffic = false; }));
  EXPECT_FALSE(other([](JobSpec& next) { next.request["VpcConfig"] = {{"Subnets", {"a"}}}; }));
  EXPECT_FALSE(other([](JobSpec& next) {
    next.request["ResourceConfig"] = {{"VolumeKmsKeyId", "k"}};
  }));
}

TEST(JobSpec, TensorboardUriContainsTheJobName) {
  EXPECT_EQ(tensorboard_uri("s3://b/board", "mnist"), "s3://b/board/mnist/tensorboard-output");
  EXPECT_EQ(tensorboard_uri("s3://b/", "mnist"), "s3://b/mnist/tensorboard-output");
}

TEST(JobSpec, CountsHostsOfAllGroups) {
  const Job job = a_job();
  EXPECT_EQ(job.spec.hosts(), 3u);
  EXPECT_EQ(job.spec.instance_type(1), "ml.m5.large");
  EXPECT_EQ(job.spec.instance_type(2), "ml.c5.xlarge");
  EXPECT_TRUE(job.spec.channels[0].is_of(job.spec.group(1).name));
  EXPECT_FALSE(job.spec.channels[0].is_of(job.spec.group(2).name));
  EXPECT_TRUE(job.spec.channels[1].is_of(job.spec.group(2).name));
}

TEST(Image, JsonRoundTrips) {
  const Image image{
      Image::Kind::oci, "/images/a:latest", {{"/opt/x", "/srv/x"}}, {"train"}, {{"A", "1"}}};
  EXPECT_EQ(to_json(*image_from_json(to_json(image))), to_json(image));
  EXPECT_FALSE(image_from_json({{"kind", "floppy"}}));
  const EgressSettings egress_settings{{"10.0.0.1"}, "http://p", "http://q",
                                       "localhost",  "/ca.pem",  "http://index"};
  EXPECT_EQ(to_json(*egress_settings_from_json(to_json(egress_settings))),
            to_json(egress_settings));
}

TEST(Image, ResolvesNamesOfTheConfigAndLayouts) {
  const std::map<std::string, Image> images{{"machine", {}}};
  EXPECT_EQ(resolve_image(images, "machine")->kind, Image::Kind::machine);
  EXPECT_EQ(resolve_image(images, "oci:/images/a:latest")->source, "/images/a:latest");
  EXPECT_EQ(resolve_image(images, "containers-storage:localhost/a")->kind,
            Image::Kind::containers_storage);
  EXPECT_EQ(resolve_image(images, "oci:").error().kind, Kind::invalid);
  EXPECT_EQ(
      resolve_image(images, "debian").error().message,
      "image 'debian' is neither a name of the config's images (machine), nor oci:PATH:TAG, nor "
      "containers-storage:NAME, nor HOST/NAME:TAG of a registry");
}

TEST(Image, ResolvesNamesOfRegistries) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  struct Case {
    std::string name, source;
  };
  const Case cases[] = {
      {"127.0.0.1:5000/team/train:v1", "docker://127.0.0.1:5000/team/train:v1"},
      {"docker://yard.lan/train", "docker://yard.lan/train:latest"},
      {"localhost/train", "docker://localhost/train:latest"},
      {"yard.lan/train:v1@" + digest, "docker://yard.lan/train@" + digest},
      {"123456789012.dkr.ecr.eu-west-1.amazonaws.com/mine:1",
       "docker://123456789012.dkr.ecr.eu-west-1.amazonaws.com/mine:1"},
      {"debian:12", ""},
      {"team/train:v1", ""},
      {"yard.lan/", ""},
      {"yard.lan/Train", ""},
      {"yard.lan/train:v 1", ""},
      {"yard.lan/train@sha256:short", ""},
      {"yard.lan/train@md5:0", ""},
      {"-yard.lan,x/train", ""},
  };
  for (const auto& each : cases) {
    const auto image = resolve_image({}, each.name);
    EXPECT_EQ(image ? transport_of(*image) : "", each.source) << each.name;
  }
}

TEST(Image, FindsTheMostSpecificKey) {
  std::map<std::string, Image> images;
  for (const char* key :
       {"pytorch-training", "pytorch-training:2.*", "pytorch-training:2.*-cpu-*", "huggingface-*",
        "7631*.dkr.ecr.eu-*.amazonaws.com/pytorch-training:*", "yard.lan/*", "yard.lan/exact:1"})
    images[key] = {};
  for (const char* key : {"pytorch-training:2.3-gpu", "sagemaker-xgboost", "yard.lan/exact:2"})
    images[key].built_in = true;
  struct Case {
    const char *name, *key;
  };
  const Case cases[] = {
      {"763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:1.13.1-cpu-py39",
       "pytorch-training"},
      {"763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0.0-gpu-py310",
       "pytorch-training:2.*"},
      {"763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0.0-cpu-py310",
       "pytorch-training:2.*-cpu-*"},
      {"763104351884.dkr.ecr.eu-west-2.amazonaws.com/pytorch-training:2.0.0-cpu-py310",
       "7631*.dkr.ecr.eu-*.amazonaws.com/pytorch-training:*"},
      {"763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.3-gpu",
       "pytorch-training:2.*"},
      {"246618743249.dkr.ecr.us-west-2.amazonaws.com/sagemaker-xgboost:1.5-1", "sagemaker-xgboost"},
      {"763104351884.dkr.ecr.cn-north-1.amazonaws.com.cn/huggingface-pytorch-training:1",
       "huggingface-*"},
      {"pytorch-training:1", "pytorch-training"},
      {"docker.io/pytorch-training:1", ""},
      {"yard.lan/exact:1", "yard.lan/exact:1"},
      {"yard.lan/exact:2", "yard.lan/*"},
      {"yard.lan/team/other", "yard.lan/*"},
      {"nobody/knows", ""},
  };
  for (const auto& each : cases) {
    const std::string* key = find_image_key(images, each.name);
    EXPECT_EQ(key ? *key : "", each.key) << each.name;
  }
}

TEST(InstanceType, FindsTypesByName) {
  const auto found = find_instance_type("ml.m5.large");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cpus, 2u);
  EXPECT_EQ(found->memory_gib, 8);
  EXPECT_EQ(find_instance_type("ml.p3.16xlarge")->gpus, 8u);
  EXPECT_FALSE(find_instance_type("m5.large"));
  EXPECT_FALSE(find_instance_type("ml.zz.large"));
  for (const auto& type : instance_types())
    EXPECT_EQ(find_instance_type(type.name)->name, type.name);
}

}  // namespace
}  // namespace trainyard::domain
