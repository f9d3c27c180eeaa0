# What docker-compose.yml needs of the official images of PostgreSQL and Prometheus, from Debian's packages
# (deploy/compose.standin.yml): the same paths, settings, ports and commands.
FROM debian:bookworm-slim AS postgres
RUN apt-get update && \
    apt-get install -y --no-install-recommends postgresql-15 && \
    rm -rf /var/lib/apt/lists/* /var/lib/postgresql/15 && \
    install -d -o postgres -g postgres -m 0700 /var/lib/postgresql/data
COPY standin-postgres.sh /usr/local/bin/
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
USER postgres
# Ends at once and breaks off transactions; SIGTERM would wait for clients.
STOPSIGNAL SIGINT
ENTRYPOINT ["bash", "/usr/local/bin/standin-postgres.sh"]

FROM debian:bookworm-slim AS prometheus
RUN apt-get update && \
    apt-get install -y --no-install-recommends prometheus && \
    rm -rf /var/lib/apt/lists/* && \
    install -d -o nobody -g nogroup -m 0700 /prometheus
VOLUME /prometheus
USER nobody
WORKDIR /prometheus
ENTRYPOINT ["/usr/bin/prometheus"]
