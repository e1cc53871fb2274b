"""The statements that replicas, clients and operators send, and their answers: no socket, file or clock."""
