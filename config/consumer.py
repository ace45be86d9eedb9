"""Celery's consumer without its delayed delivery: on RabbitMQ 28 exchanges and queues, for delays we never ask for."""

from celery.worker import consumer


class Consumer(consumer.Consumer):
    class Blueprint(consumer.Consumer.Blueprint):  # type: ignore[misc, valid-type]
        default_steps = [step for step in consumer.Consumer.Blueprint.default_steps if "delayed_delivery" not in step]
