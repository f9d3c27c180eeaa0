"""What tests/end_to_end/python_client.py does with errors, against a server that answers as it is told."""
import concurrent.futures
import time
import unittest

import grpc

import python_client
from dpar.v1 import training_pb2, training_pb2_grpc
from google.rpc import error_details_pb2, status_pb2


class Server(training_pb2_grpc.TrainingServiceServicer):
    """Answers GetJob with the errors that it was given, then with a job."""

    def __init__(self, errors):
        self.errors, self.calls = errors, []

    def GetJob(self, request, context):
        self.calls.append(time.monotonic())
        if not self.errors:
            return training_pb2.Job(name=request.name)
        code, details = self.errors.pop(0)
        status = status_pb2.Status(code=code.value[0], message="as told")
        for detail in details:
            status.details.add().Pack(detail)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(code, "as told")


def unavailable(seconds):
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(int(seconds * 1000))
    info = error_details_pb2.ErrorInfo(reason="SERVER_UNAVAILABLE", domain="dpar.v1")
    return grpc.StatusCode.UNAVAILABLE, (info, retry)


class RetryTest(unittest.TestCase):
    def get_job(self, errors):
        servicer = Server(errors)
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=2))
        training_pb2_grpc.add_TrainingServiceServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(server.stop, None)
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.addCleanup(channel.close)
        stub = training_pb2_grpc.TrainingServiceStub(channel)
        request = training_pb2.GetJobRequest(name="tenants/t/jobs/j")
        try:
            return servicer, python_client.persist(lambda: stub.GetJob(request)), None
        except python_client.Refused as refused:
            return servicer, None, refused

    def test_unavailable_is_tried_again_after_the_time_that_retry_info_names(self):
        servicer, job, _ = self.get_job([unavailable(0.5), unavailable(0)])
        self.assertEqual(job.name, "tenants/t/jobs/j")
        self.assertEqual(len(servicer.calls), 3)
        self.assertGreaterEqual(servicer.calls[1] - servicer.calls[0], 0.5)

    def test_other_errors_are_not_repeated_and_carry_their_reason(self):
        info = error_details_pb2.ErrorInfo(reason="PRIVACY_BUDGET_EXHAUSTED", domain="dpar.v1",
                                           metadata={"left_units": "7"})
        servicer, _, refused = self.get_job([(grpc.StatusCode.FAILED_PRECONDITION, (info,))])
        self.assertEqual(len(servicer.calls), 1)
        self.assertEqual(refused.reason, "PRIVACY_BUDGET_EXHAUSTED")
        self.assertEqual(refused.metadata, {"left_units": "7"})
        self.assertIn("FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED: as told", str(refused))

    def test_an_error_without_details_is_an_error_all_the_same(self):
        _, _, refused = self.get_job([(grpc.StatusCode.INTERNAL, ())])
        self.assertEqual(refused.reason, "")
        self.assertIn("INTERNAL / no reason", str(refused))


if __name__ == "__main__":
    unittest.main()
