"""Who asks: certificates, tokens of service accounts and of machines that join, and whom a request is judged as."""
